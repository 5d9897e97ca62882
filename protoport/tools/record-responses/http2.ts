import { HpackDecoder } from "../../gateway/src/engine/http2/hpack/decoder.ts";
import type { Address, Field, HttpRequest } from "../../testing/src/http/exchange.ts";
import {
  dataFrame,
  type Frame,
  type FrameConnection,
  frame,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
} from "../../testing/src/http/http2-frames.ts";
import { renderBytes, renderFields } from "./render.ts";

/** Maximum frame size that every server accepts (RFC 9113 §4.2). */
const maxFrameBytes = 16_384;
const maxStreamId = 2 ** 31 - 1;

/** Records HTTP/2 responses as all stream frames, with header blocks decoded and as bytes. */
export class Http2Recorder implements Disposable {
  readonly #address: Address;
  /**
   * Whether header blocks are also shown as bytes. The value is always false for node, whose blocks contain the current
   * date.
   */
  readonly #showsBlocks: boolean;
  #connection: FrameConnection | undefined;
  #decoder = new HpackDecoder(Infinity);
  #streamId = -1;

  constructor(address: Address, showsBlocks: boolean) {
    this.#address = address;
    this.#showsBlocks = showsBlocks;
  }

  /** Sends a request and returns the response's frames as text. */
  async record({ httpMethod, path, header, body }: HttpRequest): Promise<string> {
    const pseudo: Field[] = [
      [":method", httpMethod],
      [":path", path],
      [":scheme", "http"],
    ];
    const host = header.find(([name]) => name === "host")?.[1] ?? "";
    const fields = header.filter(([name]) => name !== "host");
    return await this.recordFields([...pseudo, [":authority", host], ...fields], body);
  }

  /** Sends a header list unchanged, even if it is invalid. */
  async recordFields(fields: readonly Field[], body: Uint8Array | undefined): Promise<string> {
    const connection = (this.#connection ??= await this.#open());
    const streamId = (this.#streamId += 2);
    connection.send(
      headersFrame(streamId, fields, body === undefined ? frameFlag.endStream : 0),
      ...(body === undefined ? [] : bodyFrames(streamId, body)),
    );
    return await this.#read(connection, streamId);
  }

  async #open(): Promise<FrameConnection> {
    const connection = await openFrames(this.#address);
    this.#decoder = new HpackDecoder(Infinity);
    this.#streamId = -1;
    const windowBytes = Buffer.alloc(4);
    windowBytes.writeUInt32BE(maxStreamId - 65_535);
    // SETTINGS_INITIAL_WINDOW_SIZE and the connection window are large enough for any response.
    const setting = Buffer.of(0, 4, 0x7f, 0xff, 0xff, 0xff);
    connection.send(frame(frameType.settings, 0, 0, setting), frame(frameType.windowUpdate, 0, 0, windowBytes));
    return connection;
  }

  async #read(connection: FrameConnection, streamId: number): Promise<string> {
    const lines: string[] = [];
    const data: Buffer[] = [];
    for (;;) {
      const next = await connection.readFrame();
      if (next === undefined || next.type === frameType.goAway) {
        this[Symbol.dispose]();
        return `${lines.join("")}${next === undefined ? "(the connection closed)" : `GOAWAY ${next.payload.toString("hex")}`}\n`;
      }
      if (next.streamId !== streamId) continue;
      const ends = next.type !== frameType.resetStream && (next.flags & frameFlag.endStream) !== 0;
      if (next.type === frameType.data) data.push(next.payload);
      // DATA frames are joined, because their number depends on timing.
      if ((next.type !== frameType.data || ends) && data.length > 0) {
        lines.push(`DATA ${renderBytes(Buffer.concat(data.splice(0)))}\n`);
      }
      if (next.type === frameType.headers) lines.push(this.#renderHeaders(next));
      if (next.type === frameType.resetStream) return `${lines.join("")}RST_STREAM ${next.payload.toString("hex")}\n`;
      if (ends) return `${lines.join("")}END_STREAM on ${next.type === frameType.data ? "DATA" : "HEADERS"}\n`;
    }
  }

  #renderHeaders({ payload, flags }: Frame): string {
    if ((flags & frameFlag.endHeaders) === 0) throw new Error("a header section has more than one frame");
    const { fields } = this.#decoder.decode(payload, 0, payload.byteLength);
    const pairs = fields.flatMap((name, at): Field[] => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : []));
    const block = this.#showsBlocks ? `HEADERS ${payload.toString("hex")}\n` : "HEADERS\n";
    return block + renderFields(pairs);
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }
}

function bodyFrames(streamId: number, body: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at === 0 || at < body.byteLength; at += maxFrameBytes) {
    const isLast = at + maxFrameBytes >= body.byteLength;
    frames.push(dataFrame(streamId, body.subarray(at, at + maxFrameBytes), isLast ? frameFlag.endStream : 0));
  }
  return frames;
}
