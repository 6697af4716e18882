// What a tab keeps, for as long as the test does.

export const stored = (held = new Map()) => ({
  getItem: (name) => held.get(name) ?? null,
  setItem: (name, text) => held.set(name, text),
  removeItem: (name) => held.delete(name),
});
