// Making and filling elements, in two lines instead of six.

export const byId = (id) => document.getElementById(id);

// `attributes` null or undefined are left out. Children are elements or text.
export const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// Text that has not changed is not written again: screen readers would read it again.
export const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
