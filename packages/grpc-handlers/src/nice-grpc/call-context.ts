import type { EventEmitter } from "node:events";
import type { Metadata } from "@grpc/grpc-js";
import { NiceMetadata } from "./nice-metadata.ts";

/** What the context needs of a grpc-js call. */
interface ContextSource extends EventEmitter {
  readonly metadata: Metadata;
  getPeer(): string;
  sendMetadata(metadata: Metadata): void;
}

/** The second argument for nice-grpc handlers: its `CallContext`. */
export class NiceCallContext {
  readonly metadata: NiceMetadata;
  readonly peer: string;
  readonly header: NiceMetadata = new NiceMetadata();
  readonly trailer: NiceMetadata = new NiceMetadata();
  /** Aborts when the call is cancelled, or at its deadline. */
  readonly signal: AbortSignal;
  /** Sends the header now. Without this, it is sent with the first response. An own property, for middleware. */
  readonly sendHeader: () => void;

  constructor(call: ContextSource, canceller: AbortController = new AbortController()) {
    call.on("cancelled", () => canceller.abort());
    this.metadata = new NiceMetadata(call.metadata);
    this.peer = call.getPeer();
    this.signal = canceller.signal;
    let isSent = false;
    this.sendHeader = () => {
      if (isSent) return;
      isSent = true;
      // An empty header would only be sent earlier.
      if (Object.keys(this.header.grpcJs.getMap()).length > 0) call.sendMetadata(this.header.grpcJs);
    };
  }
}
