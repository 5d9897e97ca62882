import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import type { MethodCodecs } from "./formats.ts";
import type { Callee } from "./callee.ts";

/** An RPC's options in Connect, including the options of the RPC's router. */
export type RpcOptions = UniversalHandlerOptions & Pick<ConnectRouterOptions, "connect" | "grpc" | "grpcWeb">;

/** One RPC in the routes, prepared before the first call. */
export interface Rpc {
  /** Whether the RPC has one message in each direction, or a stream in at least one direction. */
  readonly kind: "unary" | "stream";
  /** `/package.Service/Method` */
  readonly name: string;
  /** The HTTP methods that calls to this RPC may have. */
  readonly httpMethods: readonly string[];
  readonly options: RpcOptions;
  readonly codecs: MethodCodecs;
  readonly method: DescMethod;
  /** The descriptor that handlers and interceptors see, including elements that are hidden from callers. */
  readonly registered: DescMethod;
  readonly callee: Callee;
}

/** The value that a handler returns: a message, or the fields of a message. */
export type MessageInit = MessageInitShape<DescMessage>;
