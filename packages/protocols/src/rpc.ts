import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
} from "@bufbuild/protobuf";
import type {
  ConnectRouterOptions,
  HandlerContext,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { MethodCodecs } from "./formats.ts";
import type { Forwarding } from "./forwarding.ts";

/** One RPC in the routes, prepared before the first call. */
export type Rpc = UnaryRpc | StreamRpc;

/** An RPC's options in Connect, including the options of the RPC's router. */
export type RpcOptions = UniversalHandlerOptions & Pick<ConnectRouterOptions, "connect" | "grpc" | "grpcWeb">;

/** A unary response's message, header and trailer. */
export type ResponseParts = Pick<UnaryResponse, "message" | "header" | "trailer">;

/** Receives a handler's result. The methods of a reply never throw. */
export interface Reply {
  /** Receives the response. An untyped interceptor may pass a value with any type. */
  resolve(response: ResponseParts): void;
  reject(thrown: unknown): void;
}

interface AnyRpc {
  /** `/package.Service/Method` */
  readonly name: string;
  /** The HTTP methods that calls to this RPC may have. */
  readonly httpMethods: readonly string[];
  readonly options: RpcOptions;
  readonly codecs: MethodCodecs;
  /** The descriptor that handlers and interceptors see, including elements that are hidden from callers. */
  readonly registered: DescMethod;
  /** Set if calls to this RPC are forwarded as bytes instead of being handled (`serve/forward.ts`). */
  readonly forward?: Forwarding | undefined;
}

/** The value that a handler returns: a message, or the fields of a message. */
export type MessageInit = MessageInitShape<DescMessage>;

/** An RPC with one message in each direction. */
export interface UnaryRpc extends AnyRpc {
  readonly kind: "unary";
  readonly method: DescMethodUnary;
  /** Runs the interceptors and the handler. A thrown error is equivalent to a call to `reply.reject`. */
  readonly run: (call: UnaryRequest & HandlerContext, reply: Reply) => void;
}

/** An RPC with a stream in at least one direction. */
export interface StreamRpc extends AnyRpc {
  readonly kind: "stream";
  readonly method: DescMethodStreaming;
  readonly invoke: (request: StreamRequest) => Promise<StreamResponse>;
}
