import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { within } from "../../../packages/testing/src/deadline.ts";
import type { Address } from "../../../packages/testing/src/carriers/exchange.ts";
import {
  clientPreface,
  type Frame,
  frame,
  frameBytes,
  frameFlag,
  frameType,
} from "../../../packages/testing/src/carriers/http2-frames.ts";

/** Opens a connection. */
export async function openRaw(address: Address): Promise<RawClient> {
  const socket = connect({ host: address.address, port: address.port, noDelay: true });
  await within(once(socket, "connect"), "a connection");
  return new RawClient(socket);
}

/** Opens a connection over TLS, and resolves when the handshake is done. Any certificate will do. */
export async function openRawTls({ address, port }: Address): Promise<RawClient> {
  const socket = connectTls({ host: address, port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  await within(once(socket, "secureConnect"), "a connection over TLS");
  return new RawClient(socket);
}

/** Opens a connection of HTTP/2: the preface, SETTINGS and the acknowledgement of the server's. */
export async function openRawHttp2(address: Address): Promise<RawClient> {
  const client = await openRaw(address);
  client.write(clientPreface);
  client.send(frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0));
  return client;
}

/** A connection that sends bytes as fast as they are taken, and looks at what comes as little as it can. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  #tail: Buffer = Buffer.alloc(0);
  #seen = 0;
  #wanted: { readonly text: Buffer; readonly count: number; readonly seen: PromiseWithResolvers<void> } | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    // The end of a connection shows where something is waited for.
    socket.on("error", () => {});
    socket.once("close", () => this.#wanted?.seen.reject(new Error("the server has closed the connection")));
  }

  send(...frames: readonly Frame[]): void {
    this.write(Buffer.concat(frames.map(frameBytes)));
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  }

  /** Reads what comes and throws it away. */
  drain(): this {
    this.socket.on("data", (chunk: Buffer) => this.#look(chunk));
    return this;
  }

  /** Waits until a text has come so many times from now on. Rejects when the connection ends before. */
  async until(text: Buffer, count: number = 1): Promise<void> {
    const seen = Promise.withResolvers<void>();
    this.#seen = 0;
    this.#wanted = { text, count, seen };
    await within(seen.promise, `${count} times ${JSON.stringify(text.toString("latin1"))}`);
    this.#wanted = undefined;
  }

  /** Waits until the server has dealt with every frame that was sent. */
  async settled(): Promise<void> {
    const mark = Buffer.from("all done");
    this.send(frame(frameType.ping, 0, 0, mark));
    await this.until(mark);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #look(chunk: Buffer): void {
    if (this.#wanted === undefined) return;
    const { text, count, seen } = this.#wanted;
    const bytes = Buffer.concat([this.#tail, chunk]);
    let from = 0;
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, from)) {
      this.#seen++;
      from = at + text.byteLength;
    }
    this.#tail = bytes.subarray(Math.max(from, bytes.byteLength - text.byteLength + 1));
    if (this.#seen >= count) seen.resolve();
  }
}
