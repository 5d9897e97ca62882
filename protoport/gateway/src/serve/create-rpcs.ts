import { create, type DescFile, type DescMethod, type DescService, type Registry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type Interceptor,
  type MethodImpl,
  type MethodImplSpec,
} from "@connectrpc/connect";
import { type UniversalHandlerOptions, validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { refuseIgnoredOptions, refusePromise, refuseUnknownOptions, withCode } from "../http/index.ts";
import {
  createReachableRegistry,
  type HiddenParts,
  ignoredJsonOptions,
  memoize,
  type PartlyVisible,
  type ReadJsonOptions,
  refuseIncomplete,
  validateServices,
  type VisibilityOptions,
} from "../protobuf/index.ts";
import {
  type Admit,
  type Callee,
  createMethodCodecs,
  type MessageCheck,
  type MethodCodecs,
  procedureOf,
  type Rpc,
} from "../protocols/index.ts";
import { forwarderOf, ForwardingCallee, type InterceptedCall } from "./forwarding-callee.ts";
import { contextOf, HandlerCallee } from "./handler-callee.ts";
import { refuseMisspelledHandlers, routerOptionNames } from "./router-options.ts";
import { checkRequests, type Validation } from "./validation.ts";
import { VisibleRpcs } from "./visible-rpcs.ts";

/** The platform-dependent functions for preparing RPCs. */
export interface RpcPlatform {
  /** Returns the prototype of the descriptors that a CommonJS program creates with the same copy of protobuf-es. */
  readonly commonJsPrototype?: () => unknown;
  /** Creates an RPC's codecs. The default codecs decode and encode the RPC's messages. */
  readonly createCodecs?: typeof createMethodCodecs;
  /** Returns whether a service's descriptors were validated when the descriptors were read. Defaults to `false`. */
  readonly isValidated?: (service: DescService) => boolean;
  /**
   * The elements of validated services and of `jsonOptions.registry` that callers can see. By default, the option
   * `visibility` hides elements of the registry.
   */
  readonly definitions?: readonly PartlyVisible[];
}

/** An RPC registered with a router, and the RPC's options, which override the router's options. */
interface RegisteredRpc {
  readonly spec: MethodImplSpec;
  readonly serviceOptions: RouterOptions;
}

type RouterOptions = ConnectRouterOptions & UniversalHandlerOptions;

/** The restrictions on the messages that callers can send, and on the elements that callers can see. */
interface RpcRestrictions {
  readonly validation?: Validation | undefined;
  readonly visibility?: VisibilityOptions | undefined;
  readonly admit?: Admit | undefined;
}

interface PreparedRpcs {
  readonly rpcs: readonly Rpc[];
  /** The types that JSON may name, which are by default all types that are reachable from the services. */
  readonly registry: Registry;
  /** Removes hidden fields and values from error details. `undefined` if messages have no hidden fields or values. */
  readonly hidden: HiddenParts | undefined;
  /** The full names of the hidden services and RPCs. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. */
  readonly visibilityLabels: ReadonlySet<string>;
}

/**
 * Runs the user's `routes` with a router that accepts the same arguments as Connect's router. Yields after each RPC.
 *
 * Connect's own handlers take most of the time and memory of Connect's router, so they are created only if `routes`
 * reads `router.handlers`.
 */
export function* createRpcs(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
  jsonRules: (options: UniversalHandlerOptions) => ReadJsonOptions,
  { commonJsPrototype, createCodecs = createMethodCodecs, isValidated = () => false, definitions }: RpcPlatform,
  { validation, visibility, admit }: RpcRestrictions = {},
): Generator<void, PreparedRpcs> {
  const registered = registerRpcs(routes, options);
  const services = [...new Set(registered.map(({ spec }) => spec.method.parent))];
  requireOwnDescriptors(services, options.jsonOptions?.registry, commonJsPrototype);
  const unvalidated = services.filter((service) => !isValidated(service));
  validateServices(unvalidated);
  if (validation !== undefined) refuseIncomplete(services, "validation");
  const visibleRegistry = definitions && options.jsonOptions?.registry;
  const registries = new Set(registered.flatMap(({ serviceOptions }) => serviceOptions.jsonOptions?.registry ?? []));
  if (visibleRegistry !== undefined) registries.delete(visibleRegistry);
  const visible =
    visibility && new VisibleRpcs(unvalidated, registries, definitions, visibility, options.binaryOptions);
  const served = registered.flatMap(({ spec, serviceOptions }) => {
    const method = visible === undefined ? spec.method : visible.partOf(spec.method);
    return method === undefined ? [] : [{ spec, method, serviceOptions }];
  });
  for (const { spec } of served) admit?.requireChecked?.(spec.method);
  const visibleServices = new Set(served.map(({ method }) => method.parent));
  const visibleTypes = memoize((all: Registry) => visible?.registryOf(all) ?? all);
  const reachableTypes = memoize(createReachableRegistry);
  const ownRegistry = options.jsonOptions?.registry;
  const registry = ownRegistry === undefined ? reachableTypes(visibleServices) : visibleTypes(ownRegistry);
  const checkOf = validation?.prepare([...visibleServices], reachableTypes(visibleServices));
  const prepare = memoize((own: RouterOptions) => {
    const all = own.jsonOptions?.registry;
    const withTypes = {
      ...own,
      jsonOptions: { ...own.jsonOptions, registry: all === undefined ? registry : visibleTypes(all) },
    };
    return { withTypes, rules: jsonRules(withTypes) };
  });
  const rpcs: Rpc[] = [];
  for (const { spec, method, serviceOptions: own } of served) {
    const { withTypes, rules } = prepare(own);
    const codecs = createCodecs(method, withTypes, rules);
    const check = checkOf?.(method.input);
    const convert = visible?.converterOf(method, spec.method, own.binaryOptions);
    const interceptors = convert === undefined ? own.interceptors : [convert, ...own.interceptors];
    const callee =
      createForwarding(spec, codecs, interceptors, check) ??
      new HandlerCallee(check === undefined ? spec : checkRequests(spec, check), codecs, interceptors);
    rpcs.push(createRpc(spec, method, { ...withTypes, interceptors }, codecs, callee));
    yield;
  }
  const { hidden, hiddenRpcs = noNames, labels: visibilityLabels = noNames } = visible ?? {};
  return { rpcs, registry, hidden, hiddenRpcs, visibilityLabels };
}

const noNames: ReadonlySet<string> = new Set();

/** Runs the user's `routes`. Throws errors of {@link routerOptionsOf}, or TypeError for a misspelled handler or a promise. */
function registerRpcs(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
): readonly RegisteredRpc[] {
  const base = routerOptionsOf(options, undefined);
  const registered: RegisteredRpc[] = [];
  const router: ConnectRouter = {
    get handlers() {
      return handlersOf(registered);
    },
    service(service, implementation, override) {
      refuseMisspelledHandlers(service, implementation);
      const serviceOptions = override
        ? routerOptionsOfService(base, override, `router.service(${service.typeName})`)
        : base;
      const { methods } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(methods)) registered.push({ spec, serviceOptions });
      return router;
    },
    rpc(method, implementation, override) {
      registered.push({
        spec: createMethodImplSpec(method, implementation),
        serviceOptions: override
          ? routerOptionsOfService(base, override, `router.rpc(${method.parent.typeName}.${method.name})`)
          : base,
      });
      return router;
    },
  };
  refusePromise<unknown>(routes(router), "routes must register the services synchronously");
  return registered;
}

/**
 * Returns the options for a router or for a router's RPC, with Connect's defaults.
 *
 * @throws ConnectError if all protocols are disabled; TypeError for {@link ignoredJsonOptions}
 */
function routerOptionsOf(
  base: ConnectRouterOptions,
  override: Partial<ConnectRouterOptions> | undefined,
): RouterOptions {
  const mergedOptions = { ...base, ...override };
  refuseIgnoredOptions(mergedOptions.jsonOptions ?? {}, ignoredJsonOptions, "jsonOptions");
  // `createConnectRouter` is called only to check the options, and throws Connect's errors.
  createConnectRouter(mergedOptions);
  return { ...mergedOptions, ...validateUniversalHandlerOptions(mergedOptions) };
}

/** Returns the options for a service or an RPC. Throws errors of {@link routerOptionsOf}, or TypeError for unknown names. */
function routerOptionsOfService(
  base: ConnectRouterOptions,
  override: Partial<UniversalHandlerOptions>,
  owner: string,
): RouterOptions {
  refuseUnknownOptions(override, routerOptionNames, owner);
  return routerOptionsOf(base, override);
}

function handlersOf(registered: readonly RegisteredRpc[]): ConnectRouter["handlers"] {
  const connect = createConnectRouter();
  for (const { spec, serviceOptions: own } of registered)
    connect.rpc(spec.method, spec.impl as MethodImpl<DescMethod>, own);
  return connect.handlers;
}

/** @param visible - the RPC's descriptor without hidden elements */
function createRpc(
  { method }: MethodImplSpec,
  visible: DescMethod,
  options: RouterOptions,
  codecs: MethodCodecs,
  callee: Callee,
): Rpc {
  const { connect = true } = options;
  const common = {
    name: procedureOf(method),
    // Only the Connect protocol accepts GET at an RPC's path, for RPCs without side effects.
    httpMethods:
      connect && method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? postAndGet : postOnly,
    options,
    codecs,
    registered: method,
    callee,
  };
  return { ...common, kind: method.methodKind === "unary" ? "unary" : "stream", method: visible };
}

/** Returns the callee that forwards an RPC's calls, or `undefined` if a handler handles the calls. */
function createForwarding(
  { impl }: MethodImplSpec,
  codecs: MethodCodecs,
  interceptors: readonly Interceptor[],
  check: MessageCheck | undefined,
): Callee | undefined {
  const forwarder = forwarderOf(impl);
  if (forwarder === undefined || interceptors.length === 0)
    return forwarder && new ForwardingCallee(forwarder, codecs, check, undefined);
  const intercept = interceptors.reduceRight((next, interceptor) => interceptor(next), forwardRequest);
  return new ForwardingCallee(forwarder, codecs, check, intercept);
}

/** Forwards the request that the last interceptor passes on. */
const forwardRequest: AnyFn = (request) => {
  try {
    const context = contextOf(request);
    return (request as typeof request & { readonly call: InterceptedCall }).call.forward(request, context);
  } catch (error) {
    return Promise.reject(error);
  }
};

const postOnly = ["POST"];
const postAndGet = ["GET", "POST"];

type AnyFn = ReturnType<Interceptor>;

/** A service, or a type in a registry. */
interface Descriptor {
  readonly file: DescFile;
  toString(): string;
}

/**
 * Rejects descriptors that were created by another copy of protobuf-es.
 *
 * Copies with different versions misread each other's descriptors without an error. For example, JSON would contain a
 * number instead of an enum value's name.
 *
 * @param commonJsPrototype - returns the prototype of descriptors from the same copy in CommonJS, or is `undefined` on
 * platforms without CommonJS
 * @throws Error that names the first descriptor from another copy, and explains how to install a single copy
 */
export function requireOwnDescriptors(
  services: readonly Descriptor[],
  registry: Registry | undefined,
  commonJsPrototype: (() => unknown) | undefined,
): void {
  for (const descriptor of [...services, ...(registry ?? [])]) {
    if (isFromThisCopy(descriptor.file, commonJsPrototype)) continue;
    const problem =
      `${String(descriptor)} was created by a different copy of @bufbuild/protobuf than the gateway uses; run ` +
      '"npm ls @bufbuild/protobuf", and make every package use the same version';
    throw withCode(new Error(problem), "ERR_DESCRIPTORS");
  }
}

// In each copy of protobuf-es, all messages of a type with explicit presence share one prototype.
function isFromThisCopy({ proto }: DescFile, commonJsPrototype: (() => unknown) | undefined): boolean {
  const prototype: unknown = Object.getPrototypeOf(proto);
  return ownPrototypes.has(prototype) || prototype === commonJsPrototype?.();
}

const ownPrototypes: ReadonlySet<unknown> = new Set([
  Object.getPrototypeOf(create(FileDescriptorProtoSchema)),
  // The file descriptor.proto describes itself.
  Object.getPrototypeOf(FileDescriptorProtoSchema.file.proto),
]);
