import { frame, type Frame, type FrameConnection, frameFlag, frameType, resetFrame } from "../carriers/http2-frames.ts";
import { begun, settingFrame, windowUpdateFrame } from "./http2-requests.ts";

/** One request of a {@link WindowClient}. */
export interface WindowStream {
  readonly id: number;
  readonly body: Buffer;
  sentBytes: number;
  /** What the server lets us send. */
  sendWindow: number;
  /** What we let the server send. */
  receiveWindow: number;
  readonly received: Buffer[];
  /** `undefined` while it is open. */
  end: "answered" | "reset" | undefined;
}

/** A client that does all the arithmetic of RFC 9113 §6.9, and notices when the server's is wrong. */
export class WindowClient {
  readonly streams: WindowStream[] = [];
  readonly #connection: FrameConnection;
  readonly #choose: (below: number) => number;
  #sendWindow = 65_535;
  #receiveWindow = 65_535;
  #streamSendWindow = 65_535;
  #streamReceiveWindow: number;

  /**
   * @param choose - gives a number from 0 on and below the one that it is given: what is done next, and how much of it
   * @param initialWindowSize - the setting of RFC 9113 §6.5.2 that it announces
   */
  constructor(connection: FrameConnection, choose: (below: number) => number, initialWindowSize: number) {
    this.#connection = connection;
    this.#choose = choose;
    this.#streamReceiveWindow = initialWindowSize;
    connection.send(settingFrame(4, initialWindowSize));
  }

  /** Opens a stream with a body to send. */
  open(body: Buffer): WindowStream {
    const stream: WindowStream = {
      id: this.streams.length * 2 + 1,
      body,
      sentBytes: 0,
      sendWindow: this.#streamSendWindow,
      receiveWindow: this.#streamReceiveWindow,
      received: [],
      end: undefined,
    };
    this.streams.push(stream);
    this.#connection.send(begun(stream.id));
    return stream;
  }

  /** Resets a stream in the midst of it. */
  cancel(stream: WindowStream): void {
    if (stream.end === undefined) this.#connection.send(resetFrame(stream.id, 8));
    stream.end = "reset";
  }

  /** Does something that is allowed, until every stream has ended. */
  async run(): Promise<void> {
    while (this.streams.some(({ end }) => end === undefined)) {
      const open = this.streams.filter(({ end }) => end === undefined);
      const stream = open[this.#choose(open.length)];
      const what = this.#choose(4);
      if (stream !== undefined && what < 2 && this.#send(stream)) continue;
      if (stream !== undefined && what === 2) this.#grant(stream);
      else await this.#receive();
    }
  }

  /** Sends a piece of a body, with padding now and then. @returns whether there was room for any */
  #send(stream: WindowStream): boolean {
    const left = stream.body.byteLength - stream.sentBytes;
    const room = Math.min(this.#sendWindow, stream.sendWindow, 16_384);
    if (stream.sentBytes < 0 || (left > 0 && room <= 0)) return false;
    const bytes = left === 0 ? 0 : 1 + this.#choose(Math.min(left, room));
    const padding = room > bytes && this.#choose(3) === 0 ? this.#choose(Math.min(256, room - bytes)) : undefined;
    const piece = stream.body.subarray(stream.sentBytes, stream.sentBytes + bytes);
    const last = bytes === left;
    const end = last ? frameFlag.endStream : 0;
    const sent =
      padding === undefined
        ? frame(frameType.data, end, stream.id, piece)
        : frame(frameType.data, end | frameFlag.padded, stream.id, pad(piece, padding));
    this.#sendWindow -= sent.payload.byteLength;
    stream.sendWindow -= sent.payload.byteLength;
    // Below zero: nothing more may be sent, not even the end.
    stream.sentBytes = last ? -1 : stream.sentBytes + bytes;
    this.#connection.send(sent);
    return true;
  }

  /** Lets the server send more. */
  #grant(stream: WindowStream): void {
    const increment = 1 + this.#choose(30_000);
    this.#receiveWindow += increment;
    stream.receiveWindow += increment;
    this.#connection.send(windowUpdateFrame(0, increment), windowUpdateFrame(stream.id, increment));
  }

  async #receive(): Promise<void> {
    // A PING is answered by itself, so that there is always a frame to come.
    this.#connection.send(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    for (;;) {
      const next = await this.#connection.readFrame();
      if (next === undefined) throw new Error("the connection has ended");
      if (next.type === frameType.ping) return;
      this.#take(next);
    }
  }

  #take({ type, flags, streamId, payload }: Frame): void {
    const stream = this.streams.find(({ id }) => id === streamId);
    if (type === frameType.goAway) throw new Error(`GOAWAY with error code ${String(payload.readUInt32BE(4))}`);
    if (type === frameType.settings && flags === 0) this.#takeSettings(payload);
    if (type === frameType.windowUpdate) this.#takeWindowUpdate(stream, payload.readUInt32BE(0));
    if (stream === undefined) return;
    if (type === frameType.data) this.#takeData(stream, payload);
    if (type === frameType.resetStream) stream.end ??= "reset";
    else if ((flags & frameFlag.endStream) !== 0 && type <= frameType.headers) stream.end ??= "answered";
  }

  #takeSettings(payload: Buffer): void {
    for (let at = 0; at < payload.byteLength; at += 6) {
      if (payload.readUInt16BE(at) !== 4) continue;
      const difference = payload.readUInt32BE(at + 2) - this.#streamSendWindow;
      this.#streamSendWindow += difference;
      for (const stream of this.streams) stream.sendWindow += difference;
    }
  }

  #takeWindowUpdate(stream: WindowStream | undefined, increment: number): void {
    if (stream === undefined) this.#sendWindow += increment;
    else stream.sendWindow += increment;
  }

  #takeData(stream: WindowStream, payload: Buffer): void {
    this.#receiveWindow -= payload.byteLength;
    stream.receiveWindow -= payload.byteLength;
    if (this.#receiveWindow < 0 || stream.receiveWindow < 0) throw new Error("the server has exceeded a window");
    stream.received.push(payload);
  }
}

function pad(piece: Buffer, padding: number): Buffer {
  return Buffer.concat([Buffer.from([padding]), piece, Buffer.alloc(padding)]);
}
