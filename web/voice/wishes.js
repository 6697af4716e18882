// What the page asks of a session, as client events.

const TEXT_ONLY = { type: "realtime", output_modalities: ["text"] };

export const answerByText = () => ({ type: "session.update", session: TEXT_ONLY });

// Stop the answer; over WebRTC the server plays it, and has to be told to stop that, too.
export const interruption = (transport) => [
  { type: "response.cancel" },
  ...(transport === "voice" ? [{ type: "output_audio_buffer.clear" }] : []),
];

export const written = (text) => [
  { type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text }] } },
  { type: "response.create" },
];

// What was heard of an answer that has been cut.
export const whatWasHeard = (itemId) => ({ type: "conversation.item.retrieve", item_id: itemId });
