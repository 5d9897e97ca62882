import type { BinaryReadOptions, BinaryWriteOptions, DescService } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { withCode } from "../errors/index.ts";
import { jsonOptionNames } from "../messages/json/index.ts";
import { findMisspelled, type OptionNames } from "../options/index.ts";

const binaryOptionNames: OptionNames<Partial<BinaryReadOptions & BinaryWriteOptions>> = {
  readUnknownFields: true,
  recursionLimit: true,
  writeUnknownFields: true,
};

/** The names of the options that Connect's routers have, and each of their services. */
export const routerOptionNames: OptionNames<ConnectRouterOptions> = {
  acceptCompression: true,
  compressMinBytes: true,
  readMaxBytes: true,
  writeMaxBytes: true,
  jsonOptions: jsonOptionNames,
  binaryOptions: binaryOptionNames,
  maxTimeoutMs: true,
  shutdownSignal: true,
  requireConnectProtocolHeader: true,
  interceptors: true,
  requestGate: true,
  connect: true,
  grpc: true,
  grpcWeb: true,
};

/** Letters of a name for each one that may differ: fewer than for options, because a handler may have other methods. */
const lettersPerEdit = 4;

/**
 * Refuses an implementation with a method that is most likely a misspelled RPC: one whose name is close to that of an RPC
 * without a handler. Its other methods are its own.
 *
 * @throws TypeError that names both
 */
export function refuseMisspelledHandlers(service: DescService, implementation: object): void {
  const rpcs = service.methods.map(({ localName }) => localName);
  const methods = methodNamesOf(implementation);
  const missing = rpcs.filter((name) => !methods.has(name));
  const found = findMisspelled(methods, rpcs, missing, lettersPerEdit);
  if (found === undefined) return;
  const problem = `the service ${service.typeName} has no RPC "${found.name}", did you mean "${found.meant}"?`;
  throw withCode(new TypeError(problem), "ERR_OPTIONS");
}

/** Returns the names of an object's methods, those of its classes among them. Getters are not called. */
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
