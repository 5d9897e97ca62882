import { HttpProblem, type Limits } from "../../http/index.ts";
import type { ResponseWriter } from "./response-writer.ts";
import { ChunkedReader } from "./chunked-reader.ts";
import { Incoming } from "./incoming.ts";
import { HeadReader, type Http1RequestHead, invalidHead } from "./request-head.ts";

/**
 * What a connection processes next: a request's head, body or response. While a response is pending, no further request
 * is read. In the stage "closed", nothing is processed.
 */
export type Stage = "head" | "body" | "response" | "closed";

/** Receives heads and bodies of the requests on a connection. */
export interface RequestCallbacks {
  onHead(head: Http1RequestHead): void;
  /**
   * @param piece - a view into the received chunk, which must be kept only as the result of `detachFromChunk`
   * @param last - whether the body is known to end with the piece, so that {@link onBodyEnd} is not called
   * @returns whether the receiver keeps the piece, so that its memory must not be freed
   */
  onPiece(piece: Buffer, last: boolean): boolean;
  onBodyEnd(): void;
  /** Called when the rest of the body and later requests cannot be read. */
  onRequestError(problem: HttpProblem): void;
}

/** Reads a connection's requests one at a time. */
export class Http1RequestReader {
  #stage: Stage = "head";
  readonly #limits: Limits;
  readonly #parts: RequestCallbacks;
  readonly #output: Pick<ResponseWriter, "congested">;
  readonly incoming: Incoming = new Incoming();
  readonly #headReader: HeadReader;
  /** Number of bytes that remain in the body, or 0 if the body is chunked. */
  #remainingBodyBytes = 0;
  #chunks: ChunkedReader | undefined;
  /** Whether the receiver keeps a view into the chunk that is being read. */
  #isChunkKept = false;

  /** @param output - no further request is read while the output is congested */
  constructor(limits: Limits, parts: RequestCallbacks, output: Pick<ResponseWriter, "congested">) {
    this.#limits = limits;
    this.#output = output;
    this.#parts = parts;
    this.#headReader = new HeadReader(limits);
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** Number of bytes that remain in the body. Infinite if the body is chunked. */
  get remainingBodyBytes(): number {
    return this.#chunks === undefined ? this.#remainingBodyBytes : Number.POSITIVE_INFINITY;
  }

  /**
   * Processes the received bytes as far as possible, and copies the rest.
   *
   * @param chunk - new bytes that follow the rest of earlier chunks
   * @returns whether the chunk was kept
   */
  read(chunk?: Buffer): boolean {
    const incoming = this.incoming;
    if (chunk !== undefined) incoming.add(chunk);
    this.#isChunkKept = false;
    while (incoming.unusedBytes > 0 && this.#readPart());
    if (incoming.unusedBytes > 0) incoming.retain();
    return this.#isChunkKept;
  }

  /** Begins a request that cannot be read. The problem is sent as the response. */
  refuse(problem: HttpProblem): void {
    this.#begin(invalidHead(problem, this.incoming));
  }

  /** Continues with the next request. */
  next(): void {
    this.#stage = "head";
  }

  /** Ends the request, whose rest cannot be read. */
  abandon(): void {
    this.#stage = "response";
  }

  /** Stops reading, and frees the buffer while the connection closes. */
  stop(): void {
    this.#stage = "closed";
    this.incoming.clear();
  }

  /** Reads a head or the next piece of a body. Returns whether reading can continue. */
  #readPart(): boolean {
    if (this.#stage === "body") return this.#chunks === undefined ? this.#readPiece() : this.#readChunk(this.#chunks);
    if (this.#stage !== "head" || this.#output.congested) return false;
    const head = this.#headReader.read(this.incoming);
    if (head === undefined) return false;
    this.#begin(head);
    return true;
  }

  #begin(head: Http1RequestHead): void {
    const { bodyBytes } = head.section;
    this.#stage = bodyBytes === 0 || head.problem !== undefined ? "response" : "body";
    this.#remainingBodyBytes = bodyBytes === "chunked" ? 0 : bodyBytes;
    this.#chunks = bodyBytes === "chunked" ? new ChunkedReader(this.#limits.headerBytes) : undefined;
    this.#parts.onHead(head);
  }

  #readPiece(): boolean {
    const piece = this.incoming.consumePiece(this.#remainingBodyBytes);
    this.#remainingBodyBytes -= piece.byteLength;
    const isLast = this.#remainingBodyBytes === 0;
    if (isLast) this.#stage = "response";
    this.#deliver(piece, isLast);
    return true;
  }

  #readChunk(chunks: ChunkedReader): boolean {
    const read = chunks.read(this.incoming);
    if (read === "open") return false;
    if (read instanceof Buffer) this.#deliver(read, false);
    else if (read instanceof HttpProblem) this.#parts.onRequestError(read);
    else if (read === "end") {
      this.#stage = "response";
      this.#parts.onBodyEnd();
    }
    return true;
  }

  #deliver(piece: Buffer, last: boolean): void {
    if (this.#parts.onPiece(piece, last)) this.#isChunkKept = true;
  }
}
