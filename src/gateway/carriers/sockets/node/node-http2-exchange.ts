import type { Http2ServerRequest, Http2ServerResponse, Http2Session, ServerHttp2Stream } from "node:http2";
import { ErrorCode } from "../../../http2/index.ts";
import { afterTurn, clientGone, type CommonHeaderFields, type HttpProblem, unreadBodyBytesMax } from "../../index.ts";
import { peerOf } from "../peer.ts";
import { resetProblem } from "../reset-problem.ts";
import { NodeExchange } from "./node-exchange.ts";

/** An exchange carried by a server of node:http2, through its compatibility layer. */
export class NodeHttp2Exchange extends NodeExchange {
  readonly httpVersion = "2.0";
  readonly connection: object;
  readonly #stream: ServerHttp2Stream;
  readonly #session: Http2Session | undefined;
  readonly #response: Http2ServerResponse;
  #isReset = false;
  #linger: NodeJS.Timeout | undefined;
  /** Bytes of the body that came after the answer. */
  #droppedBytes = 0;

  constructor(request: Http2ServerRequest, response: Http2ServerResponse, common: CommonHeaderFields) {
    const { method: httpMethod, url: target, rawHeaders: fields, stream, scheme } = request;
    const url = `${scheme}://${request.authority || common.host}${target}`;
    const bodyBytes = stream.endAfterHeaders ? undefined : Number(common.contentLength ?? 0);
    const { session } = stream;
    super(request, response, { httpMethod, target, url, fields, common, bodyBytes }, peerOf(session?.socket));
    this.connection = session ?? stream;
    this.#session = session;
    this.#stream = stream;
    this.#response = response;
    // `close` reports a reset to the call; without a listener the error would end the process.
    stream.on("error", ignore);
    // A stream that is never read to its end is never freed.
    if (this.body === undefined) request.resume();
  }

  protected get isClosed(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  override startBody(): void {
    const stream = this.#stream;
    // Without a listener for `checkContinue`, node has sent it already.
    const isDue = stream.readableLength === 0 && stream.sentInfoHeaders === undefined;
    const isExpected = isDue && this.common.expect?.toLowerCase() === "100-continue";
    if (isExpected && this.isOpen && this.httpStatus === 0) this.#response.writeContinue();
    super.startBody();
  }

  override consumed(bytes: number): void {
    super.consumed(bytes);
    if (!this.isComplete) return;
    this.#droppedBytes += bytes;
    if (this.#droppedBytes > unreadBodyBytesMax) this.#stop();
  }

  protected flushHeader(): void {
    this.#response.writeHead(this.#response.statusCode);
  }

  protected sendReset(): void {
    this.#isReset = true;
    this.#stream.close(ErrorCode.internalError);
  }

  /** Also stops a body that goes on long after the answer was sent (RFC 9113 §8.1). */
  protected override complete(): void {
    super.complete();
    if (this.body?.ended === false) this.#linger = setInterval(() => this.#stop(), lingerMs).unref();
  }

  /** Asks the client to stop sending, once the answer has been sent, its trailer section included. */
  #stop(): void {
    const { writableFinished, sentTrailers } = this.#stream;
    // DATA is finished, by node's account, before the client's window lets the last of it and the trailers pass.
    if (!writableFinished || (!this.isHeaderOnly && sentTrailers === undefined)) return;
    // Node's reset overtakes a trailer section that was sent in the same turn of the event loop.
    afterTurn(stopReceiving, this.#stream);
  }

  override closed(): void {
    clearInterval(this.#linger);
    super.closed();
    // What the compatibility layer has not taken from it.
    while (this.#stream.read() !== null);
  }

  protected closeProblem(): HttpProblem {
    // node closes the streams of a broken connection with an error code of its own.
    const brokenOff = this.#isReset || this.#session?.destroyed === true;
    return brokenOff ? clientGone() : resetProblem(this.#stream.rstCode);
  }
}

function stopReceiving(stream: ServerHttp2Stream): void {
  stream.close(ErrorCode.noError);
}

// Milliseconds that a client may go on sending its body after the answer: time for the answer to arrive.
const lingerMs = 1000;

function ignore(): void {}
