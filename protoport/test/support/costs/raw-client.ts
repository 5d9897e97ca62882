import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { within } from "../../../testing/src/deadline.ts";
import type { Address } from "../../../testing/src/http/exchange.ts";
// oxfmt-ignore
import { clientPreface, type Frame, frame, frameBytes, frameFlag, frameType
} from "../../../testing/src/http/http2-frames.ts";

export async function openRaw(address: Address): Promise<RawClient> {
  const socket = connect({ host: address.address, port: address.port, noDelay: true });
  await within(once(socket, "connect"), "a connection");
  return new RawClient(socket);
}

export async function openRawTls({ address, port }: Address): Promise<RawClient> {
  const socket = connectTls({ host: address, port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  await within(once(socket, "secureConnect"), "a connection over TLS");
  return new RawClient(socket);
}

/** Opens an HTTP/2 connection with the preface, SETTINGS, and an acknowledgement for the server's. */
export async function openRawHttp2(address: Address): Promise<RawClient> {
  const client = await openRaw(address);
  client.write(clientPreface);
  client.send(frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0));
  return client;
}

/** A connection that sends bytes with backpressure, and inspects received bytes as little as possible. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  #tail: Buffer = Buffer.alloc(0);
  #received = 0;
  #expected: { readonly text: Buffer; readonly count: number; readonly done: PromiseWithResolvers<void> } | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    // Errors are reported by the functions that wait for data.
    socket.on("error", () => {});
    socket.once("close", () => this.#expected?.done.reject(new Error("the server has closed the connection")));
  }

  send(...frames: readonly Frame[]): void {
    this.write(Buffer.concat(frames.map(frameBytes)));
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  }

  drain(): this {
    this.socket.on("data", (chunk: Buffer) => this.#count(chunk));
    return this;
  }

  /** Waits until a text has been received `count` times from now on. Rejects when the connection closes before. */
  async until(text: Buffer, count: number = 1): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#received = 0;
    this.#expected = { text, count, done };
    await within(done.promise, `${count} times ${JSON.stringify(text.toString("latin1"))}`);
    this.#expected = undefined;
  }

  /** Waits until the server has handled all frames that were sent. */
  async settled(): Promise<void> {
    const mark = Buffer.from("all done");
    this.send(frame(frameType.ping, 0, 0, mark));
    await this.until(mark);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #count(chunk: Buffer): void {
    if (this.#expected === undefined) return;
    const { text, count, done } = this.#expected;
    const bytes = Buffer.concat([this.#tail, chunk]);
    let from = 0;
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, from)) {
      this.#received++;
      from = at + text.byteLength;
    }
    this.#tail = bytes.subarray(Math.max(from, bytes.byteLength - text.byteLength + 1));
    if (this.#received >= count) done.resolve();
  }
}
