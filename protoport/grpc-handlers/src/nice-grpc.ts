/** Serves nice-grpc handlers, with ts-proto's definitions for nice-grpc or with grpc-js definitions. */
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { ServiceDefinition, UntypedHandleCall } from "@grpc/grpc-js";
import { addGrpcJsService, type GrpcJsOptions } from "./grpc-js.ts";
import { type GenericDefinition, type NiceHandler, toGrpcJsDefinition, toGrpcJsHandler } from "./nice-grpc/index.ts";

export type { GenericDefinition } from "./nice-grpc/index.ts";
export { readServices, type HandlerDescriptors } from "./grpc-js.ts";

/**
 * Registers handlers written for nice-grpc, instead of `server.add(definition, implementation)`. The handlers are
 * served as by `addGrpcJsService`, with the same options and errors. Middleware for nice-grpc does not run. Use
 * interceptors for Connect or grpc-js instead.
 *
 * @returns the service descriptor
 */
export function addNiceGrpcService(
  router: ConnectRouter,
  definition: GenericDefinition | ServiceDefinition,
  implementation: object,
  options: GrpcJsOptions = {},
): DescService {
  const methods = toGrpcJsDefinition(definition);
  const handlers: Record<string, UntypedHandleCall> = {};
  for (const [key, method] of Object.entries(methods)) {
    const handler = handlerOf(implementation, [key, key.slice(0, 1).toLowerCase() + key.slice(1)]);
    if (handler !== undefined) handlers[key] = toGrpcJsHandler(method, handler);
  }
  return addGrpcJsService(router, methods, handlers, options);
}

// Returns the first method in `names` that the object has, bound to the object.
function handlerOf(implementation: object, names: readonly string[]): NiceHandler | undefined {
  for (const name of names) {
    const handler: unknown = Reflect.get(implementation, name);
    if (typeof handler === "function") return (...args) => Reflect.apply(handler, implementation, args);
  }
  return undefined;
}
