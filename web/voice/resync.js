// The transcript after a connection has been replaced, out of what the page knows and what the server says there is. Pure.

// `items` in the server's order; `made(item)` is a turn for one that the page does not know, `known(turn, item)` one that it does.
// What stands above the last divider is of conversations before; what is older than the first of the items did not fit among them.
// Marks keep their place behind the turn that they followed.
export const restored = (turns, items, { made, known }) => {
  const above = turns.findLastIndex((turn) => turn.role === "divider") + 1;
  const first = turns.findIndex((turn, place) => place >= above && turn.id === items[0]?.id);
  const began = Math.max(above, first);
  const present = turns.slice(began);
  const byId = new Map(present.map((turn) => [turn.id, turn]));
  const now = items
    .filter((item) => item.type === undefined || item.type === "message")
    .filter((item) => item.role === "user" || item.role === "assistant")
    .map((item) => (byId.has(item.id) ? known(byId.get(item.id), item) : made(item)));
  for (const [place, mark] of present.entries()) {
    if (mark.role !== "mark") continue;
    const before = present[place - 1]?.id;
    now.splice(now.findIndex((turn) => turn.id === before) + 1, 0, mark);
  }
  return [...turns.slice(0, began), ...now];
};
