import { CollectedBytes, noBytes } from "./bytes.ts";
import { type BodyMemory, BufferedBody, detachFromChunk } from "./buffered-body.ts";
import { clientGoneProblem, type HttpProblem } from "./http-problem.ts";

/** The HTTP exchange to which a {@link RequestBody} belongs. */
export interface BodySource {
  /** Called at the first read, unless part of the body has arrived. Sends 100 (Continue) if due (RFC 9110 §10.1.1). */
  startBody(): void;
  /** Records that `bytes` bytes of the body were consumed. The client may send as many further bytes. */
  consumed(bytes: number): void;
}

/** The {@link RequestBody} methods that its HTTP exchange calls. */
export type IncomingBody = Pick<RequestBody, "onData" | "onEnd" | "isAwaited" | "isFull">;

/** Limit and announced length for reading a whole body. */
export interface BodyPlan {
  /** Maximum number of bytes that the body may have. */
  readonly limitBytes: number;
  readonly memory: BodyMemory;
  /** Returns the length that the first piece announces, or 0. Memory grows only with the received bytes. */
  readonly announcedBytes: (firstPiece: Uint8Array) => number;
}

/** Returns the plan for a body that has no length prefix and may be passed to the program. */
export function planBody(limitBytes: number): BodyPlan {
  return { limitBytes, memory: "own", announcedBytes: noAnnouncedLength };
}

/** The `announcedBytes` of a {@link BodyPlan} for bodies without a length prefix. */
export function noAnnouncedLength(): number {
  return 0;
}

/** Receives a whole body. */
export interface BodyReceiver {
  /** @param body - `undefined` if the body exceeds the limit */
  received(body: Uint8Array | undefined): void;
  /**
   * Called with the start of an incomplete body, each time more bytes have arrived. `start` is valid only during the
   * call. If the receiver returns `true`, it reads the rest itself, and `received` is not called.
   */
  readonly receivedStart?: ((start: Uint8Array, rest: AsyncIterable<Uint8Array>) => boolean) | undefined;
  /** Called instead of `received`. `problem` is the reason for the abort, or absent after a complete response. */
  dropped?(problem: HttpProblem | undefined): void;
}

interface WholeRead {
  readonly receiver: BodyReceiver;
  readonly plan: BodyPlan;
  /** The collected bytes, or `undefined` before the first piece. */
  body: CollectedBytes | undefined;
}

interface PieceRead {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (reason: HttpProblem) => void;
}

/**
 * The body of a request. The HTTP exchange passes each received piece to the body. The call reads the body once, either
 * completely or in pieces. Data that arrives earlier is copied to a buffer, and counts as consumed when the call reads
 * it.
 */
export class RequestBody {
  /** Whether the complete body has arrived. */
  ended = false;
  readonly #source: BodySource;
  readonly #announcedBytes: number;
  #buffered: BufferedBody | undefined;
  #whole: WholeRead | undefined;
  #next: PieceRead | undefined;
  /** Whether the receiver of a whole body has decided to read the rest in pieces. */
  #isTaken = false;
  #closed = false;
  /** Whether part of the body was or will be dropped, so that a reader does not get the complete body. */
  #isTruncated = false;
  #problem: HttpProblem | undefined;

  /** @param announcedBytes - the length in the header, or 0 if the header has no length */
  constructor(source: BodySource, announcedBytes: number) {
    this.#source = source;
    this.#announcedBytes = announcedBytes;
  }

  /** Whether the buffer is full, so that reading from the client should pause. */
  get isFull(): boolean {
    return this.#buffered !== undefined && this.#buffered.byteLength > maxBufferedBytes;
  }

  /** Whether a call is waiting for the rest of the body, which must then arrive before a deadline. */
  get isAwaited(): boolean {
    return this.#whole !== undefined || (this.#isTaken && !this.ended);
  }

  /**
   * Reads the whole body. The receiver gets the bytes, or `undefined` as soon as the body exceeds the limit. If the
   * client disconnects first, or the response is complete, `dropped` is called instead.
   */
  read(plan: BodyPlan, receiver: BodyReceiver): void {
    const { limitBytes } = plan;
    if (this.#isTruncated) return receiver.dropped?.(this.#problem);
    const buffered = this.#buffered;
    const arrivedBytes = buffered?.byteLength ?? 0;
    if (this.#announcedBytes > limitBytes || arrivedBytes > limitBytes) return receiver.received(undefined);
    // Consumes the data that arrived while the request was being admitted.
    const bufferedPieces = buffered?.takeAll();
    if (bufferedPieces !== undefined) this.#source.consumed(bufferedPieces.byteLength);
    if (this.ended) return receiver.received(bufferedPieces ?? noBytes);
    this.#whole = { receiver, plan, body: undefined };
    if (bufferedPieces === undefined) this.#source.startBody();
    else this.#collect(this.#whole, bufferedPieces);
  }

  /**
   * Returns the pieces of the body, with backpressure. Only one piece may be requested at a time. Iteration throws an
   * {@link HttpProblem} if the client disconnects, or if body bytes are dropped because the response is complete.
   */
  pieces(): AsyncIterable<Uint8Array> {
    if (this.#buffered === undefined && !this.#closed) this.#source.startBody();
    return this.#iterate();
  }

  #iterate(): AsyncIterable<Uint8Array> {
    const next = (): Promise<IteratorResult<Uint8Array>> => {
      const block = this.#buffered?.shift();
      if (block !== undefined) {
        this.#source.consumed(block.byteLength);
        return Promise.resolve({ done: false, value: block });
      }
      if (this.#isTruncated) return Promise.reject(this.#problem ?? clientGoneProblem());
      if (this.ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve, reject) => {
        this.#next = { resolve, reject };
      });
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  /**
   * Called with each piece. Returns whether the receiver keeps the piece, so that its memory must not be freed.
   *
   * @param last - whether the body is known to end with this piece, so that {@link onEnd} is not called
   */
  onData(piece: Uint8Array, last: boolean): boolean {
    const bytes = piece.byteLength;
    if (last) this.ended = true;
    if (this.#closed) {
      this.#source.consumed(bytes);
      return false;
    }
    const next = this.#next;
    if (next !== undefined) {
      this.#next = undefined;
      const copy = detachFromChunk(piece);
      this.#source.consumed(bytes);
      next.resolve({ done: false, value: copy });
      return copy === piece;
    }
    if (this.#whole !== undefined) return this.#addToWhole(this.#whole, piece, last);
    (this.#buffered ??= new BufferedBody()).add(piece);
    return false;
  }

  onEnd(): void {
    this.ended = true;
    this.#next?.resolve({ done: true, value: undefined });
    this.#next = undefined;
    const whole = this.#whole;
    this.#whole = undefined;
    whole?.receiver.received(whole.body?.bytes ?? noBytes);
  }

  /** Drops unread and later data. `problem` is the reason for the abort, or absent after a complete response. */
  close(problem?: HttpProblem): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#isTruncated = !this.ended || (this.#buffered?.byteLength ?? 0) > 0;
    this.#problem = problem;
    this.#next?.reject(problem ?? clientGoneProblem());
    this.#whole?.receiver.dropped?.(problem);
    // Drops the buffered data, which a slow handler or a call that is being admitted would otherwise keep alive.
    this.#buffered = undefined;
    this.#next = undefined;
    this.#whole = undefined;
  }

  #addToWhole(whole: WholeRead, piece: Uint8Array, last: boolean): boolean {
    this.#source.consumed(piece.byteLength);
    if (piece.byteLength + (whole.body?.byteLength ?? 0) > whole.plan.limitBytes) {
      this.#whole = undefined;
      whole.receiver.received(undefined);
    } else if (whole.body === undefined && last) {
      // Most bodies arrive in one piece. node's streams report the end of a body later than the last piece.
      this.#whole = undefined;
      const copy = detachFromChunk(piece, whole.plan.memory);
      whole.receiver.received(copy);
      return copy === piece;
    } else {
      this.#collect(whole, piece);
      if (last) this.onEnd();
    }
    return false;
  }

  #collect(whole: WholeRead, piece: Uint8Array): void {
    const { plan, receiver, body } = whole;
    body?.add(piece);
    if (receiver.receivedStart?.(body?.bytes ?? piece, this.#iterate()) === true) {
      this.#isTaken = true;
      this.#whole = undefined;
    } else if (body === undefined) {
      whole.body = new CollectedBytes(this.#announcedBytes || plan.announcedBytes(piece), plan.limitBytes);
      whole.body.add(piece);
    }
  }
}

/** Number of buffered body bytes at which reading is paused. One read from a socket may return 64 KiB. */
const maxBufferedBytes = 64 * 1024;
