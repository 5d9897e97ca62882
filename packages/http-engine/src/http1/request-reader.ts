import { HttpProblem, type Limits } from "@plantstore/gateway/exchange";
import type { ResponseWriter } from "./response-writer.ts";
import { ChunkedReader } from "./chunked-reader.ts";
import { Incoming } from "./incoming.ts";
import { HeadReader, type Http1RequestHead, invalidHead } from "./request-head.ts";

/**
 * What comes next on a connection: the head of a request; its body; its answer, while no further request is read; or
 * nothing, because the connection is over.
 */
export type Stage = "head" | "body" | "response" | "closed";

/** Gets the requests of a connection, part by part. */
export interface RequestCallbacks {
  onHead(head: Http1RequestHead): void;
  /**
   * @param piece - a view of what has arrived, of which no more may be kept than `ownPiece` returns
   * @param last - whether the body is known to end with the piece; {@link onBodyEnd} is then not called
   * @returns whether the piece is kept; otherwise its memory may be freed
   */
  onPiece(piece: Buffer, last: boolean): boolean;
  onBodyEnd(): void;
  /** Called when the rest of the body cannot be read, nor anything after it. */
  onRequestError(problem: HttpProblem): void;
}

/** Reads the requests of a connection one at a time: what has arrived, and what comes next. */
export class RequestReader {
  stage: Stage = "head";
  /** Whether it is reading now, so that it goes on to what comes next by itself. */
  isReading = false;
  readonly #limits: Limits;
  readonly #parts: RequestCallbacks;
  readonly #output: Pick<ResponseWriter, "congested">;
  /** What has arrived and is not used yet. */
  readonly incoming: Incoming = new Incoming();
  readonly #heads: HeadReader;
  /** Bytes of the body that are still to come, if its length is known. */
  #bodyBytesLeft = 0;
  #chunks: ChunkedReader | undefined;
  /** Whether a view of the chunk that is being read was kept. */
  #isChunkKept = false;

  /** @param output - no further request is read while it is congested */
  constructor(limits: Limits, parts: RequestCallbacks, output: Pick<ResponseWriter, "congested">) {
    this.#limits = limits;
    this.#output = output;
    this.#parts = parts;
    this.#heads = new HeadReader(limits);
  }

  /** Bytes of the body that are still to come; infinite if nobody knows how many. */
  get bodyBytesLeft(): number {
    return this.#chunks === undefined ? this.#bodyBytesLeft : Number.POSITIVE_INFINITY;
  }

  /**
   * Uses as much of what has arrived as it can, and copies the rest.
   *
   * @param chunk - comes behind what was left of earlier ones
   * @returns whether a view of the chunk was kept
   */
  read(chunk?: Buffer): boolean {
    const incoming = this.incoming;
    if (chunk !== undefined) incoming.add(chunk);
    this.#isChunkKept = false;
    this.isReading = true;
    try {
      while (incoming.unusedBytes > 0 && this.#readPart());
    } finally {
      this.isReading = false;
    }
    if (incoming.unusedBytes > 0) incoming.retain();
    return this.#isChunkKept;
  }

  /** Begins a request of which nothing but its problem is known. */
  refuse(problem: HttpProblem): void {
    this.#begin(invalidHead(problem));
  }

  /** Reads nothing more, and holds nothing for a client that may take its time to go. */
  stop(): void {
    this.stage = "closed";
    this.incoming.clear();
  }

  /** Reads the next part, and returns whether it had arrived. */
  #readPart(): boolean {
    if (this.stage === "body") return this.#chunks === undefined ? this.#readPiece() : this.#readChunk(this.#chunks);
    if (this.stage !== "head" || this.#output.congested) return false;
    const head = this.#heads.read(this.incoming);
    if (head === undefined) return false;
    this.#begin(head);
    return true;
  }

  #begin(head: Http1RequestHead): void {
    const { bodyBytes } = head.section;
    this.stage = bodyBytes === 0 || head.problem !== undefined ? "response" : "body";
    this.#bodyBytesLeft = bodyBytes === "chunked" ? 0 : bodyBytes;
    this.#chunks = bodyBytes === "chunked" ? new ChunkedReader(this.#limits.headerBytes) : undefined;
    this.#parts.onHead(head);
  }

  #readPiece(): boolean {
    const piece = this.incoming.consumePiece(this.#bodyBytesLeft);
    this.#bodyBytesLeft -= piece.byteLength;
    const isLast = this.#bodyBytesLeft === 0;
    if (isLast) this.stage = "response";
    this.#deliver(piece, isLast);
    return true;
  }

  #readChunk(chunks: ChunkedReader): boolean {
    const read = chunks.read(this.incoming);
    if (read === "open") return false;
    if (read instanceof Buffer) this.#deliver(read, false);
    else if (read instanceof HttpProblem) this.#parts.onRequestError(read);
    else if (read === "end") {
      this.stage = "response";
      this.#parts.onBodyEnd();
    }
    return true;
  }

  #deliver(piece: Buffer, last: boolean): void {
    if (this.#parts.onPiece(piece, last)) this.#isChunkKept = true;
  }
}
