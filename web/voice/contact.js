// A conversation that outlives its connections: a lost one is replaced by another, with the server's ticket.
//
// A line is one connection: a Call or a TextCall. `connect({ resume, signal })`, `send(event)`, `close()` says goodbye,
// `drop()` does not, since the conversation goes on elsewhere. It tells `on.event(event)` and `on.lost(problem, stillS)`: for how
// long nothing had come when it noticed.

import { comeBack } from "./comeback.js";
import { Problem } from "./words.js";

// Errors with which the server says why it is about to end the connection.
const LAST_WORDS = { server_draining: "server_stopped", superseded: "superseded" };
const MOVED = "session_moved"; // after all the conversation goes on, elsewhere

export class Contact {
  #dial;
  #ticket;
  #transport;
  #on;
  #line = null;
  #next = null; // the one that is to take its place
  #left = []; // given up, not closed: the server would take that for a goodbye
  #lastWord = null;
  #ending = new AbortController();
  #reconnecting = false;

  // `dial(on)` makes a line. Resolves when it is connected; with a ticket that holds a token, to the conversation of before.
  // `on`: event(event), queued(place) while it waits for a seat, up(line) for each that is connected, reconnecting(), reconnected(seconds), ended(problem).
  static async open({ dial, ticket, transport, on, signal }) {
    signal.throwIfAborted(); // before there is a contact: its end forgets the ticket, which by now may be another's
    const contact = new Contact(dial, ticket, transport, on);
    signal.addEventListener("abort", () => contact.close(signal.reason), { once: true });
    try {
      contact.#line = ticket.token === null ? await contact.#attempt() : await contact.#comeBack();
      on.up(contact.#line);
      return contact;
    } catch (error) {
      contact.close();
      throw error;
    }
  }

  constructor(dial, ticket, transport, on) {
    this.#dial = dial;
    this.#ticket = ticket;
    this.#transport = transport;
    this.#on = on;
  }

  send(event) {
    if (!this.#reconnecting) this.#line?.send(event);
  }

  // Tells the server that nobody comes back. Harmless when it is over already.
  close(reason) {
    if (this.#over) return;
    this.#ticket.forget();
    this.#end((line) => line.close(), reason);
  }

  // It may be lost although nothing has said so.
  async reconnect(stillS = 0) {
    if (this.#over || this.#reconnecting) return;
    const sinceS = performance.now() / 1000 - stillS;
    this.#reconnecting = true;
    this.#on.reconnecting();
    try {
      const line = await this.#comeBack();
      this.#line.drop();
      this.#line = line;
      this.#reconnecting = false;
      this.#on.up(line);
      this.#on.reconnected(performance.now() / 1000 - sinceS);
    } catch (error) {
      this.#fail(error);
    }
  }

  get #over() {
    return this.#ending.signal.aborted;
  }

  async #comeBack() {
    const line = await comeBack({ attempt: () => this.#attempt(), graceS: this.#ticket.graceS, signal: this.#ending.signal });
    for (const before of this.#left.splice(0)) before.drop();
    return line;
  }

  async #attempt() {
    const line = this.#dial({ event: (event) => this.#hear(line, event), lost: (...lost) => this.#lost(line, ...lost), queued: this.#on.queued });
    this.#next = line;
    try {
      await line.connect({ resume: this.#ticket.token, signal: this.#ending.signal });
      return line;
    } catch (error) {
      if (this.#over) line.close();
      else this.#left.push(line);
      throw error;
    } finally {
      this.#next = null;
    }
  }

  #hear(line, event) {
    if (this.#over || (line !== this.#line && line !== this.#next)) return;
    if (event.type === "error" && event.error.code === MOVED) return this.#moved(line);
    if (event.type === "error" && Object.hasOwn(LAST_WORDS, event.error.code)) return this.#lastWords(line, event.error.code);
    if (event.session !== undefined && event.resume) this.#ticket.keep(event.resume, this.#transport, Date.now());
    this.#on.event(event);
  }

  // Of a line that is being replaced it says nothing new.
  #lastWords(line, code) {
    if (line !== this.#line || this.#reconnecting) return;
    this.#lastWord = new Problem(LAST_WORDS[code]);
    if (code === "superseded") this.#fail(this.#lastWord);
  }

  #moved(line) {
    if (line === this.#line) this.#lastWord = null;
  }

  #lost(line, problem, stillS) {
    if (this.#over || line !== this.#line || this.#reconnecting) return;
    if (this.#lastWord !== null || this.#ticket.token === null || problem.code === "superseded") return this.#fail(this.#lastWord ?? problem);
    this.reconnect(stillS);
  }

  #fail(error) {
    if (this.#over) return;
    this.#ticket.forget();
    this.#end((line) => line.drop());
    this.#on.ended(error);
  }

  #end(each, reason) {
    this.#ending.abort(reason);
    for (const line of [this.#line, ...this.#left.splice(0)]) if (line !== null) each(line);
  }
}
