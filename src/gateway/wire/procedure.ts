import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { HandlerContext, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { UniversalHandler, UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { MethodCodecs } from "./codec.ts";

/** One RPC as the user's routes define it, with all that can be settled before the first call. */
export interface Procedure {
  /** `/package.Service/Method` */
  readonly name: string;
  /** Connect's own handler: serves the streams, and says which protocols are on. */
  readonly handler: UniversalHandler;
  readonly options: UniversalHandlerOptions;
  /** Present for a unary RPC, whose calls take the lean path. */
  readonly unary: UnaryProcedure | undefined;
}

/** What a unary call needs of its RPC. */
export interface UnaryProcedure {
  readonly method: DescMethodUnary;
  readonly codecs: MethodCodecs;
  /** Runs the interceptors and the handler. */
  readonly invoke: (call: Invocation, message: Message) => Promise<UnaryResponse>;
}

/** A unary call that runs, as the chain of its interceptors and its handler needs it. */
export interface Invocation {
  /** Aborts when the call ends, however it ends. */
  readonly signal: AbortSignal;

  /** What the signal's reason is, or would be if it were built; `undefined` until it aborts. */
  readonly abortReason: unknown;

  /** Presents the call to the interceptors. */
  createRequest(message: Message): UnaryRequest;

  /**
   * The context for the handler, with whatever an interceptor has put in place of the original.
   *
   * @throws what the call was cancelled with: it has nobody to run for any more
   */
  contextFor(request: UnaryRequest): HandlerContext;
}
