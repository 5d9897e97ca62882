import type { DescMessage, DescMethodStreaming, DescMethodUnary, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, StreamRequest, StreamResponse, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { MethodCodecs } from "./codec.ts";
import type { RpcContentType } from "./content-type.ts";

/** One RPC of the user's routes, with everything prepared before the first call. */
export type Procedure = UnaryProcedure | StreamProcedure;

/** The common parts of both kinds of procedures. */
interface AnyProcedure {
  /** `/package.Service/Method` */
  readonly name: string;
  /** Which protocols of Connect's its calls may use. */
  readonly speaks: Readonly<Record<RpcContentType["protocol"], boolean>>;
  /** The HTTP methods of its calls. */
  readonly httpMethods: readonly string[];
  readonly options: UniversalHandlerOptions;
  readonly codecs: MethodCodecs;
}

/** What a handler returns: a message, or the fields to create it from. */
export type MessageInit = MessageInitShape<DescMessage>;

/** An RPC with one message in each direction. */
export interface UnaryProcedure extends AnyProcedure {
  readonly kind: "unary";
  readonly method: DescMethodUnary;
  /** Runs the interceptors and the handler; `undefined` where there are no interceptors. */
  readonly intercept: ((request: UnaryRequest) => Promise<UnaryResponse>) | undefined;
  /** The handler alone. */
  readonly handle: (message: Message, context: HandlerContext) => MessageInit | Promise<MessageInit>;
}

/** An RPC with a stream in at least one direction. */
export interface StreamProcedure extends AnyProcedure {
  readonly kind: "stream";
  readonly method: DescMethodStreaming;
  /** Runs the interceptors and the handler. */
  readonly invoke: (request: StreamRequest) => Promise<StreamResponse>;
}
