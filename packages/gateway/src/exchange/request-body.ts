import { noBytes } from "./bytes.ts";
import { CollectedBytes } from "./collected-bytes.ts";
import { type BodyMemory, HeldBody, ownPiece } from "./held-body.ts";
import { clientGone, type HttpProblem } from "./http-problem.ts";

/** The carrier that a {@link RequestBody} comes from. */
export interface BodySource {
  /**
   * Called when the body is wanted, unless some of it has arrived. A client that waits for that is told to send it (RFC
   * 9110 §10.1.1).
   */
  startBody(): void;
  /** Notes that `bytes` of the body were used, so that the client may send as many more. */
  consumed(bytes: number): void;
}

/** The side of a {@link RequestBody} that its carrier sees. */
export type IncomingBody = Pick<RequestBody, "onData" | "onEnd" | "isAwaited" | "isFull">;

/** How a whole body is read. */
export interface BodyPlan {
  /** The most bytes that the body may have. */
  readonly limitBytes: number;
  readonly memory: BodyMemory;
  /**
   * Returns the length that a body announces in its first piece; 0 if it announces none. Memory is allocated for it in
   * proportion to what has arrived.
   */
  readonly announcedBytes: (firstPiece: Uint8Array) => number;
}

/** Returns the plan for a body that is passed to the program, and announces no length itself. */
export function planBody(limitBytes: number): BodyPlan {
  return { limitBytes, memory: "own", announcedBytes: announcesNothing };
}

/** The `announcedBytes` of a {@link BodyPlan} for bodies that announce no length. */
export function announcesNothing(): number {
  return 0;
}

/** Receives a whole body. */
export interface BodyReceiver {
  /** @param body - `undefined` when it exceeds the limit */
  received(body: Uint8Array | undefined): void;
  /**
   * Called instead when the rest of the body is dropped.
   *
   * @param problem - why the client is taken to be gone; absent when the answer is complete
   */
  dropped?(problem: HttpProblem | undefined): void;
}

/** A read of the whole body that waits for the rest. */
interface WholeRead {
  readonly receiver: BodyReceiver;
  readonly plan: BodyPlan;
  /** `undefined` before the first piece. */
  body: CollectedBytes | undefined;
}

interface PieceRead {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (reason: HttpProblem) => void;
}

/**
 * The body of one request, which its carrier puts in as it arrives, and its call reads once: whole or in pieces.
 *
 * What arrives before it is read is held, as a copy, and counts as consumed only when it is read.
 */
export class RequestBody {
  /** Whether all of it has arrived. */
  ended = false;
  readonly #source: BodySource;
  readonly #announcedBytes: number;
  #held: HeldBody | undefined;
  #whole: WholeRead | undefined;
  #next: PieceRead | undefined;
  #closed = false;
  /** Whether some of it was dropped, or will be: what was read must not be taken for all. */
  #isCut = false;
  #problem: HttpProblem | undefined;

  /** @param announcedBytes - the length by the header; 0 if that does not say */
  constructor(source: BodySource, announcedBytes: number) {
    this.#source = source;
    this.#announcedBytes = announcedBytes;
  }

  /** Whether so much is held that no more should be read from the client. */
  get isFull(): boolean {
    return this.#held !== undefined && this.#held.byteLength > heldBytesMax;
  }

  /** Whether a reader waits for the whole body, which should then arrive in time. */
  get isAwaited(): boolean {
    return this.#whole !== undefined;
  }

  /**
   * Reads the whole body and passes it to the receiver, or `undefined` as soon as it exceeds the limit. If the client
   * goes away first, or the response is complete, its `dropped` is called instead, if it has one.
   */
  read(plan: BodyPlan, receiver: BodyReceiver): void {
    const { limitBytes } = plan;
    if (this.#isCut) return receiver.dropped?.(this.#problem);
    const held = this.#held;
    if (this.#announcedBytes > limitBytes || (held?.byteLength ?? 0) > limitBytes) return receiver.received(undefined);
    // What arrived while the request was being admitted was held back, and counts as consumed from here on.
    const before = held?.takeAll();
    if (before !== undefined) this.#source.consumed(before.byteLength);
    if (this.ended) return receiver.received(before ?? noBytes);
    this.#whole = { receiver, plan, body: undefined };
    if (before === undefined) this.#source.startBody();
    else this.#collect(this.#whole, before);
  }

  /**
   * Returns the body as it arrives, with back-pressure. One piece is asked for at a time. Iteration throws an
   * {@link HttpProblem} if the client goes away, or if some of the body is dropped because the answer is complete.
   */
  pieces(): AsyncIterable<Uint8Array> {
    if (this.#held === undefined && !this.#closed) this.#source.startBody();
    const next = (): Promise<IteratorResult<Uint8Array>> => {
      const held = this.#held?.shift();
      if (held !== undefined) {
        this.#source.consumed(held.byteLength);
        return Promise.resolve({ done: false, value: held });
      }
      if (this.#isCut) return Promise.reject(this.#problem ?? clientGone());
      if (this.ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve, reject) => {
        this.#next = { resolve, reject };
      });
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  /**
   * Takes a piece from the carrier.
   *
   * @param last - whether the body is known to end with it; {@link onEnd} is then not needed
   * @returns whether the piece is kept; otherwise its memory may be freed
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
      const own = ownPiece(piece);
      this.#source.consumed(bytes);
      next.resolve({ done: false, value: own });
      return own === piece;
    }
    if (this.#whole !== undefined) return this.#addToWhole(this.#whole, piece, last);
    (this.#held ??= new HeldBody()).add(piece);
    return false;
  }

  /** Called by the carrier when all of the body has arrived. */
  onEnd(): void {
    this.ended = true;
    this.#next?.resolve({ done: true, value: undefined });
    this.#next = undefined;
    const whole = this.#whole;
    this.#whole = undefined;
    if (whole !== undefined) this.pass(whole.receiver, whole.body?.bytes ?? noBytes);
  }

  /**
   * Drops what was not read, and what is still to come.
   *
   * @param problem - why the client is taken to be gone; absent when the answer is complete
   */
  close(problem?: HttpProblem): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#isCut = !this.ended || (this.#held?.byteLength ?? 0) > 0;
    this.#problem = problem;
    this.#next?.reject(problem ?? clientGone());
    this.#whole?.receiver.dropped?.(problem);
    // A call that is still being admitted, or a handler that takes its time, would keep it alive for as long.
    this.#held = undefined;
    this.#next = undefined;
    this.#whole = undefined;
  }

  /** Passes on the whole body, which has arrived later than it was asked for. */
  protected pass(receiver: BodyReceiver, body: Uint8Array | undefined): void {
    receiver.received(body);
  }

  #addToWhole(whole: WholeRead, piece: Uint8Array, last: boolean): boolean {
    this.#source.consumed(piece.byteLength);
    if (piece.byteLength + (whole.body?.byteLength ?? 0) > whole.plan.limitBytes) {
      this.#whole = undefined;
      this.pass(whole.receiver, undefined);
    } else if (whole.body === undefined && last) {
      // The whole body in one piece, as most bodies are. Streams of node's tell only later that a piece was the last.
      this.#whole = undefined;
      const own = ownPiece(piece, whole.plan.memory);
      this.pass(whole.receiver, own);
      return own === piece;
    } else {
      this.#collect(whole, piece);
      if (last) this.onEnd();
    }
    return false;
  }

  #collect(whole: WholeRead, piece: Uint8Array): void {
    const { plan } = whole;
    whole.body ??= new CollectedBytes(this.#announcedBytes || plan.announcedBytes(piece), plan.limitBytes);
    whole.body.add(piece);
  }
}

/** Bytes of a body that are held before its carrier reads no more of it. */
// As much as is read from a socket at once.
const heldBytesMax = 64 * 1024;
