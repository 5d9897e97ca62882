import type { BinaryReadOptions, BinaryWriteOptions, DescService } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { withCode, findMisspelled, integerBetween, type OptionNames } from "../http/index.ts";
import { jsonOptionNames } from "../protobuf/index.ts";
import { maxMessageBytes } from "../protocols/index.ts";

const binaryOptionNames: OptionNames<Partial<BinaryReadOptions & BinaryWriteOptions>> = {
  readUnknownFields: true,
  recursionLimit: true,
  writeUnknownFields: true,
};

/** The names of the options for Connect's routers and for each service. */
export const routerOptionNames: OptionNames<ConnectRouterOptions> = {
  acceptCompression: true,
  compressMinBytes: integerBetween(0, Number.POSITIVE_INFINITY),
  readMaxBytes: integerBetween(1, maxMessageBytes),
  writeMaxBytes: integerBetween(1, maxMessageBytes),
  jsonOptions: jsonOptionNames,
  binaryOptions: binaryOptionNames,
  maxTimeoutMs: integerBetween(0, Number.POSITIVE_INFINITY),
  shutdownSignal: true,
  requireConnectProtocolHeader: true,
  interceptors: true,
  requestGate: true,
  connect: true,
  grpc: true,
  grpcWeb: true,
};

/**
 * Number of letters that a name must have per edit to count as a misspelled RPC. The number is larger than for options,
 * because an implementation may have other methods with similar names.
 */
const optionLettersPerEdit = 4;

/**
 * Rejects an implementation with a method that is most likely a misspelled RPC. A misspelled name resembles an RPC
 * without a handler. Other methods are allowed.
 *
 * @throws TypeError that names the method and the RPC
 */
export function refuseMisspelledHandlers(service: DescService, implementation: object): void {
  const rpcs = service.methods.map(({ localName }) => localName);
  const methods = methodNamesOf(implementation);
  const missing = rpcs.filter((name) => !methods.has(name));
  const found = findMisspelled(methods, rpcs, missing, optionLettersPerEdit);
  if (found === undefined) return;
  const problem = `the service ${service.typeName} has no RPC "${found.name}", did you mean "${found.suggestion}"?`;
  throw withCode(new TypeError(problem), "ERR_OPTIONS");
}

/** Returns the names of an object's own and inherited methods. Does not call getters. */
function methodNamesOf(implementation: object): ReadonlySet<string> {
  const names = new Set<string>();
  for (let part: object | null = implementation; part !== null && part !== Object.prototype;) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(part))) {
      if (typeof value === "function" && name !== "constructor") names.add(name);
    }
    part = Object.getPrototypeOf(part);
  }
  return names;
}
