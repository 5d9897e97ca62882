import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createFaultReporter } from "../../../gateway/src/serve/index.ts";
import { type Exchange, planBody, runSteps, toUtf8 } from "../../../gateway/src/http/exchange/index.ts";
import { assembleGateway, compileNodeRoutes, createNodeServer } from "../../../gateway/src/create-gateway.ts";
import type { Gateway, GatewayOptions } from "../../../gateway/src/index.ts";
import { metadataFields } from "../../../gateway/src/protocols/shared/error-metadata.ts";
import {
  BodyCallWire,
  type BodyWire,
  createBodyProtocol,
  httpStatusOf,
  type Protocol,
  type Rpc,
  type CallTarget,
  type Wire,
} from "../../../gateway/src/protocols/index.ts";

/** The path for all JSON-RPC calls. */
export const jsonRpcPath = "/json-rpc";

/** Maximum number of bytes in a JSON-RPC call's body. */
export const maxJsonRpcBytes = 1024;

/** The JSON-RPC 2.0 error codes ("Error object"), and a code that servers may define. */
export const jsonRpcErrors = { parse: -32700, invalidRequest: -32600, methodNotFound: -32601, server: -32000 } as const;

/**
 * Creates a gateway that also serves unary RPCs over JSON-RPC 2.0, a protocol that names the RPC in the body. The
 * protocol supports no batches, no notifications, and only integer ids.
 */
export function createJsonRpcGateway(options: GatewayOptions): Gateway {
  const report = createFaultReporter(options.onFault);
  const routes = runSteps(compileNodeRoutes(options, report));
  const jsonRpc = createJsonRpc((procedure) => {
    const known = routes.paths.get(procedure);
    return known?.kind === "rpc-path" && known.rpc.kind === "unary" ? known.rpc : undefined;
  });
  // Adds the protocol in the same way as `createProtocols` does.
  const { all, withPaths, ...others } = routes.protocols;
  const protocols = { ...others, all: [jsonRpc, ...all], withPaths: [jsonRpc, ...withPaths] };
  const server = createNodeServer(options, { ...routes, protocols }, report);
  return assembleGateway({ server, handlerOptions: options });
}

function createJsonRpc(rpcOf: (procedure: string) => Rpc | undefined): Protocol & Required<Pick<Protocol, "find">> {
  return createBodyProtocol(
    // A protocol that the gateway includes would add its name to the union.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    "json-rpc" as Protocol["name"],
    jsonRpcPath,
    (exchange, protocol) => new JsonRpcBodyWire(exchange, protocol, rpcOf),
    (exchange, fields) => ({
      writeError: (error) => writeError(exchange, httpStatusOf(error), fields, null, jsonRpcErrors.server, error),
    }),
  );
}

type Id = number | null;

class JsonRpcBodyWire implements BodyWire {
  readonly body = planBody(maxJsonRpcBytes);
  readonly problem: ConnectError | undefined;
  readonly #exchange: Exchange;
  readonly #protocol: Protocol;
  readonly #rpcOf: (procedure: string) => Rpc | undefined;
  /** The call's id, which is `null` until it is known ("Response object"). */
  #id: Id = null;
  /** The error code if the next step fails. */
  #errorCode: number = jsonRpcErrors.invalidRequest;

  constructor(exchange: Exchange, protocol: Protocol, rpcOf: (procedure: string) => Rpc | undefined) {
    const isJson = exchange.common.contentType === "application/json";
    this.problem = isJson ? undefined : invalid("the content type is not application/json");
    this.#exchange = exchange;
    this.#protocol = protocol;
    this.#rpcOf = rpcOf;
  }

  readTarget(body: Uint8Array): CallTarget {
    this.#errorCode = jsonRpcErrors.parse;
    const request = parse(body);
    this.#errorCode = jsonRpcErrors.invalidRequest;
    if (!isRequest(request)) throw invalid("the body is not a request");
    const { id, method, params } = request;
    this.#id = id;
    this.#errorCode = jsonRpcErrors.methodNotFound;
    const rpc = this.#rpcOf(`/${method}`);
    if (rpc === undefined) throw new ConnectError("there is no such method", Code.Unimplemented);
    this.#errorCode = jsonRpcErrors.server;
    const open = (exchange: Exchange): Wire => new JsonRpcWire(exchange, rpc, id, params);
    return { kind: "unary", protocol: this.#protocol, rpc, pathTemplate: jsonRpcPath, open };
  }

  writeError(error: ConnectError): void {
    if (error.code === Code.Unauthenticated) writeError(this.#exchange, 401, [], null, jsonRpcErrors.server, error);
    else writeError(this.#exchange, 200, [], this.#id, this.#errorCode, error);
  }

  release(): void {}
}

class JsonRpcWire extends BodyCallWire implements Wire {
  readonly #id: Id;
  readonly #params: object;

  constructor(exchange: Exchange, rpc: Rpc, id: Id, params: object) {
    super(exchange, rpc, exchange.fields);
    this.#id = id;
    this.#params = params;
  }

  read(): Message {
    return this.decode(JSON.stringify(this.#params));
  }

  write(message: Message): void {
    const result: unknown = JSON.parse(Buffer.from(this.codec.encode(message)).toString());
    write(this.exchange, 200, [], { jsonrpc: "2.0", id: this.#id, result });
  }

  writeError(error: ConnectError): void {
    writeError(this.exchange, 200, [], this.#id, jsonRpcErrors.server, error);
  }

  release(): void {}
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    throw invalid("the body is not JSON");
  }
}

type JsonRpcRequest = { readonly id: number; readonly method: string; readonly params: object };

function isRequest(value: unknown): value is JsonRpcRequest {
  const { id, method, params } = (value ?? {}) as Partial<Record<keyof JsonRpcRequest, unknown>>;
  return typeof id === "number" && typeof method === "string" && typeof params === "object" && params !== null;
}

function invalid(message: string): ConnectError {
  return new ConnectError(message, Code.InvalidArgument);
}

function writeError(
  exchange: Exchange,
  httpStatus: number,
  fields: readonly string[],
  id: Id,
  code: number,
  error: ConnectError,
): void {
  const body = { jsonrpc: "2.0", id, error: { code, message: error.rawMessage } };
  write(exchange, httpStatus, [...fields, ...metadataFields(error)], body);
}

function write(exchange: Exchange, httpStatus: number, fields: readonly string[], body: object): void {
  exchange.respond(httpStatus, ["content-type", "application/json", ...fields], toUtf8(JSON.stringify(body)));
}
