import type { EventEmitter } from "node:events";
import type { Metadata } from "@grpc/grpc-js";
import { NiceMetadata } from "./nice-metadata.ts";

/** The members of a grpc-js call that the context uses. */
interface ContextSource extends EventEmitter {
  readonly metadata: Metadata;
  getPeer(): string;
  sendMetadata(metadata: Metadata): void;
}

/** The second argument for nice-grpc handlers, which is nice-grpc's `CallContext`. */
export class NiceCallContext {
  readonly metadata: NiceMetadata;
  readonly peer: string;
  readonly header: NiceMetadata = new NiceMetadata();
  readonly trailer: NiceMetadata = new NiceMetadata();
  /** Aborts when the call is cancelled, or at its deadline. */
  readonly signal: AbortSignal;
  /** Sends the header before the first response. Not a method, because `{ ...context }` copies only own properties. */
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
      // An empty header is not sent now, because sending it early has no benefit.
      if (Object.keys(this.header.grpcJs.getMap()).length > 0) call.sendMetadata(this.header.grpcJs);
    };
  }
}
