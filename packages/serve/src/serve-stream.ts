import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, StreamRequest } from "@connectrpc/connect";
import {
  oneMessage,
  type RequestMessages,
  type StreamRpc,
  type StreamTarget,
  type StreamWire,
} from "@plantstore/protocols";
import { CallView } from "./call-view.ts";
import { decodeBody, type MessageCall, readBody } from "./read-message.ts";
import { exchangeOf, type ServedRequest } from "./request.ts";
import { ConvertedMessages } from "./stream-messages.ts";
import { type StreamedCall, StreamResponse } from "./stream-response.ts";

/** Opens a streaming call and starts its deadline. */
export function serveStream(request: ServedRequest, target: StreamTarget): void {
  const { rpc } = target;
  const wire = target.open(exchangeOf(request));
  request.begin(new StreamCall(request, rpc, wire), rpc, wire.timeoutMs);
}

/** A streaming call, from opening the wire to the response. */
class StreamCall implements StreamedCall<Message>, MessageCall<Message> {
  readonly request: ServedRequest;
  readonly rpc: StreamRpc;
  readonly wire: StreamWire;
  readonly view: CallView;
  readonly response: StreamResponse<Message>;
  /** The messages that the handler yields, or `undefined` if an interceptor has replaced the messages. */
  #yielded: ConvertedMessages<unknown> | undefined;
  #requests: RequestMessages | undefined;

  constructor(request: ServedRequest, rpc: StreamRpc, wire: StreamWire) {
    this.request = request;
    this.rpc = rpc;
    this.wire = wire;
    this.view = new CallView(this, exchangeOf(request), rpc, wire, wire.timeoutMs);
    this.response = new StreamResponse(this, wire);
  }

  /** Reads the messages as they arrive, or the body if the client sends a single message. */
  read(): void {
    if (this.rpc.method.methodKind === "server_streaming") readBody(this);
    else this.#invoke((this.#requests = this.wire.readMessages()));
  }

  received(body: Uint8Array | undefined): void {
    decodeBody(this, body);
  }

  decode(body: Uint8Array): Message | Promise<Message> {
    return this.wire.readMessage(body);
  }

  run(message: Message): void {
    this.#invoke(oneMessage(message));
  }

  #invoke(messages: AsyncIterable<Message>): void {
    this.view.message = messages;
    const request = this.view as CallView & StreamRequest;
    const respond = async (): Promise<void> => {
      const { header, trailer, message } = await this.rpc.invoke(request);
      this.#yielded = message instanceof ConvertedMessages ? message : undefined;
      this.response.respond(header, trailer, this.#yielded?.source ?? message);
    };
    respond().catch((error: unknown) => this.request.failHandling(error, this.view));
  }

  toMessage(item: unknown): Message {
    return this.#yielded === undefined ? (item as Message) : this.#yielded.convert(item);
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return this.wire.encode(message);
  }

  writeError(error: ConnectError): void | Promise<void> {
    return this.response.writeError(error);
  }

  get errorCompressionMsMax(): number | undefined {
    return this.response.errorCompressionMsMax;
  }

  close(): void {
    this.#requests?.close?.();
    this.response.close();
  }
}
