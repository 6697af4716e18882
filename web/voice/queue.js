// A place in the waiting room: what the server says of it, in words.

const SOON_S = 10;
const MINUTES_FROM_S = 90;

// As it stands in a refusal's `error.queue` and in `session.queued`.
export const placeOf = ({ position, estimate_s }) => ({ position, estimateS: estimate_s ?? null });

// Large, and what it means.
export const queueWords = ({ position, estimateS }) => [
  position === 1 ? "You are next" : `${ordinal(position)} in line`,
  `${estimateS === null ? "All seats are taken." : `About ${duration(estimateS)}.`} You are let in as soon as there is a seat.`,
];

const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });
const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };

const ordinal = (number) => `${number}${ENDINGS[ORDINALS.select(number)]}`;

// No more exact than it is known.
const duration = (seconds) => {
  if (seconds < SOON_S) return "10 s";
  if (seconds < MINUTES_FROM_S) return `${Math.round(seconds / 10) * 10} s`;
  return `${Math.round(seconds / 60)} minutes`;
};
