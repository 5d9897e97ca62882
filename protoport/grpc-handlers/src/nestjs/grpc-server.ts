import type { MessageHandler } from "./held-requests.ts";

/** The members of Nest's class `ServerGrpc` that a strategy uses. */
export interface GrpcServer {
  /** Called by Nest for each method of a controller, with the function that runs the method and its enhancers. */
  addHandler(...handler: readonly unknown[]): unknown;
  /** Loads the definitions, and adds a service for each definition to the `createClient` result. */
  bindEvents(): Promise<void>;
  /** Returns the function that runs a controller's method. The arguments identify the method. */
  getMessageHandler(...method: readonly unknown[]): MessageHandler | null | undefined;
}

/** The `Transport.GRPC` options that only a grpc-js server has, and the alternative for each option. */
export const ignoredGrpcOptions: Readonly<Record<string, string>> = {
  url: "set listen of the third argument, such as { host, port }",
  credentials: "set tls of the option listen",
  maxReceiveMessageLength: "set gateway.readMaxBytes of the third argument",
  maxSendMessageLength: "responses have no limit",
  maxMetadataSize: "header fields have a limit of the gateway",
  keepalive: "connections have timeouts of the gateway",
  channelOptions: "they are options of a server of grpc-js",
  gracefulShutdown: "set closeTimeoutMs of the third argument",
  onLoadPackageDefinition: "add services with gateway.routes of the third argument",
};
