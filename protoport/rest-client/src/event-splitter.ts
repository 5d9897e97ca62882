import type { MessageSplitter } from "@protoport/gateway/messages";
import { messageTooLargeError } from "@protoport/gateway/errors";

/** A server-sent event. */
export interface ServerEvent {
  /** The event name, or `message` if the server sends no name. */
  readonly name: string;
  readonly data: string;
}

const lineEnd = /\r\n|\n|\r(?!$)/g;

/** Splits a body into server-sent events (HTML, "Interpreting an event stream"). An incomplete event is dropped. */
export class EventSplitter implements MessageSplitter<ServerEvent> {
  readonly #decoder = new TextDecoder();
  readonly #dataMax: number;
  #text = "";
  #at = 0;
  /** Index in the text at which the search for a line end continues. */
  #searchAt = 0;
  #name = "";
  #data: string[] = [];
  #units = 0;

  /** @param dataMax - maximum UTF-16 units in an event's data, above which reading fails with `ResourceExhausted` */
  constructor(dataMax: number) {
    this.#dataMax = dataMax;
  }

  add(piece: Uint8Array): void {
    this.#text = this.#text.slice(this.#at) + this.#decoder.decode(piece, { stream: true });
    this.#searchAt -= this.#at;
    this.#at = 0;
  }

  take(): ServerEvent | undefined {
    for (let line = this.#line(); line !== undefined; line = this.#line()) {
      if (line !== "") this.#field(line);
      else if (this.#data.length > 0) return this.#event();
      else this.#name = "";
    }
    return undefined;
  }

  end(): undefined {
    return undefined;
  }

  #line(): string | undefined {
    lineEnd.lastIndex = this.#searchAt;
    const found = lineEnd.exec(this.#text);
    // A carriage return at the end is searched again, because the next piece may start with the line feed.
    // equivalent mutant: after the check below throws, the search index is not read.
    this.#searchAt = found === null ? Math.max(this.#text.length - 1, this.#at) : lineEnd.lastIndex;
    if (this.#units + (found?.index ?? this.#text.length) - this.#at > this.#dataMax)
      throw messageTooLargeError(this.#dataMax);
    if (found === null) return undefined;
    const line = this.#text.slice(this.#at, found.index);
    this.#at = lineEnd.lastIndex;
    return line;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "event") this.#name = value;
    if (name !== "data") return;
    this.#units += value.length;
    this.#data.push(value);
  }

  #event(): ServerEvent {
    const event = { name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n") };
    this.#name = "";
    this.#data = [];
    this.#units = 0;
    return event;
  }
}
