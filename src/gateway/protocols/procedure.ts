import type { DescMessage, DescMethodStreaming, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type {
  ConnectRouterOptions,
  HandlerContext,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { MethodCodecs } from "./codec.ts";

/** One RPC of the user's routes, with everything prepared before the first call. */
export type Procedure = UnaryProcedure | StreamProcedure;

/** Connect's options of an RPC, with those of its router. */
export type ProcedureOptions = UniversalHandlerOptions & Pick<ConnectRouterOptions, "connect" | "grpc" | "grpcWeb">;

/** What is written of a response. */
export type ResponseParts = Pick<UnaryResponse, "message" | "header" | "trailer">;

/** Takes what a handler answers. Never throws. */
export interface Reply {
  /** Takes the response, which an untyped interceptor may have made of anything. */
  take(response: ResponseParts): void;
  /** Takes what went wrong instead. */
  takeError(thrown: unknown): void;
}

/** The common parts of both kinds of procedures. */
interface AnyProcedure {
  /** `/package.Service/Method` */
  readonly name: string;
  /** The HTTP methods of its calls. */
  readonly httpMethods: readonly string[];
  readonly options: ProcedureOptions;
  readonly codecs: MethodCodecs;
}

/** What a handler returns: a message, or the fields to create it from. */
export type MessageInit = MessageInitShape<DescMessage>;

/** An RPC with one message in each direction. */
export interface UnaryProcedure extends AnyProcedure {
  readonly kind: "unary";
  readonly method: DescMethodUnary;
  /** Runs the interceptors, if there are any, and the handler. What it throws is as what the reply is told. */
  readonly run: (call: UnaryRequest & HandlerContext, reply: Reply) => void;
}

/** An RPC with a stream in at least one direction. */
export interface StreamProcedure extends AnyProcedure {
  readonly kind: "stream";
  readonly method: DescMethodStreaming;
  /** Runs the interceptors and the handler. */
  readonly invoke: (request: StreamRequest) => Promise<StreamResponse>;
}
