/** Serves grpc-js handlers, with definitions from `@grpc/proto-loader`, ts-proto and protoc's plugin for grpc-js. */
import type { DescService } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import type {
  ServerInterceptor,
  ServiceDefinition,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { registerForwarder } from "@protoport/gateway/forward";
import { type OptionNames, refuseUnknownOptions } from "@protoport/gateway/options";
import { type AnyHandler, findConverter, findEncode, HandlerForwarder, type MessageTypes } from "./calls/index.ts";
import { type HandlerDescriptors, findMethod, findService, findServices } from "./descriptors/index.ts";

export { readServices, type HandlerDescriptors } from "./descriptors/index.ts";

/** Options for {@link addGrpcJsService}. */
export interface GrpcJsOptions {
  /**
   * The service descriptors. Required unless the definition is from `@grpc/proto-loader`, which includes descriptors.
   * proto-loader's descriptors lack comments, `json_name`, the custom options of services, messages, fields and enums,
   * and presence in proto2 and editions. The gateway's options `visibility` and `validation` require `descriptors`.
   */
  readonly descriptors?: HandlerDescriptors;
  /** Interceptors for grpc-js's server, in the order that its `Server` option has. */
  readonly interceptors?: readonly ServerInterceptor[];
  /**
   * Sends clients the messages of errors without a status code, as grpc-js does for errors passed to a callback. The
   * default is `false`, because messages from drivers and the file system reveal addresses and paths.
   */
  readonly exposeErrorMessages?: boolean;
  /**
   * The namespace of the file that ts-proto has generated (`import * as messages`). Its `encode` functions write
   * responses in half the time, with the same bytes. The definition writes types that `messages` does not contain.
   *
   * Samples are compared when the service is added. A type that writes other bytes causes a TypeError.
   */
  readonly messages?: MessageTypes;
}

const grpcJsOptionNames: OptionNames<GrpcJsOptions> = {
  descriptors: true,
  interceptors: true,
  exposeErrorMessages: true,
  messages: true,
};

/**
 * Registers handlers written for grpc-js, instead of `server.addService(definition, implementation)`. The handlers are
 * served like Connect handlers, over all gateway protocols, with hooks, validation and limits.
 *
 * gRPC, gRPC-Web and binary Connect messages pass as bytes to the definition's `requestDeserialize`. For REST and JSON,
 * the gateway uses the descriptors to convert messages. A method without a handler is `Unimplemented`.
 *
 * @returns the service descriptor, for OpenAPI, reflection and health
 * @throws TypeError for a definition that does not match its descriptors
 */
export function addGrpcJsService(
  router: ConnectRouter,
  definition: ServiceDefinition,
  implementation: UntypedServiceImplementation,
  options: GrpcJsOptions = {},
): DescService {
  refuseUnknownOptions(options, grpcJsOptionNames, "addGrpcJsService");
  const { descriptors, interceptors = [], exposeErrorMessages: exposesMessages = false, messages = {} } = options;
  const service = findService(definition, descriptors);
  for (const [name, method] of Object.entries(definition)) {
    const { originalName = "" } = method as { readonly originalName?: string };
    const handler = implementation[name] ?? implementation[originalName];
    const desc = findMethod(service, method.path);
    const encode = findEncode(method, desc.output, messages);
    const served = {
      definition: method,
      handler: handler === undefined ? unimplemented : bindHandler(handler, implementation),
      interceptors,
      exposesMessages,
      encode,
      toMessage: "responseEncode" in method ? undefined : findConverter(method, desc.output, encode),
    };
    registerForwarder(router, desc, new HandlerForwarder(desc, served));
  }
  return service;
}

/** Services for a gateway, which registration code adds as to grpc-js's `Server`. */
export interface GrpcJsServices {
  /**
   * Adds a service. Any code that calls `server.addService` can get this object as the server, such as `addToServer` of
   * `grpc-health-check` and `@grpc/reflection`.
   *
   * @throws Error after {@link routes} has been called, because the gateway would not serve the service
   */
  addService(this: void, definition: ServiceDefinition, implementation: UntypedServiceImplementation): void;
  /** Registers the services. The option `routes` of `createGateway`. Throws as {@link addGrpcJsService} does. */
  readonly routes: (router: ConnectRouter) => void;
  /** The descriptors of the added services, for OpenAPI and reflection. Services share the messages of their packages. */
  readonly services: readonly DescService[];
}

/** Creates an object that collects services, for registration code of grpc-js. */
export function createGrpcJsServices(options: GrpcJsOptions = {}): GrpcJsServices {
  refuseUnknownOptions(options, grpcJsOptionNames, "createGrpcJsServices");
  const added: (readonly [ServiceDefinition, UntypedServiceImplementation])[] = [];
  let described: readonly DescService[] | undefined;
  let isRouted = false;
  const describe = (): readonly DescService[] => {
    const definitions = added.map(([definition]) => definition);
    return (described ??= findServices(definitions, options.descriptors));
  };
  return {
    addService: (definition, implementation) => {
      if (isRouted) throw new Error("call addService before createGateway, which calls routes");
      added.push([definition, implementation]);
      described = undefined;
    },
    routes: (router) => {
      isRouted = true;
      const descriptors = describe();
      for (const [definition, implementation] of added)
        addGrpcJsService(router, definition, implementation, { ...options, descriptors });
    },
    get services() {
      return describe();
    },
  };
}

function bindHandler(handler: UntypedHandleCall, implementation: UntypedServiceImplementation): AnyHandler {
  return (call, callback) => Reflect.apply(handler, implementation, [call, callback]);
}

/** The handler for a method that an implementation lacks. */
const unimplemented: AnyHandler = (call) => {
  const details = `The server does not implement the method ${call.getPath()}`;
  call.emit("error", { code: Code.Unimplemented, details });
};
