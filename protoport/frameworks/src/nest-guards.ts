import {
  enhancersOf,
  fromHttpException,
  type NestConfiguration,
  type NestContainer,
  type RpcProvider,
} from "./nest-enhancers.ts";

/** Runs an RPC's guards with the application's request and response. Rejects if a guard refuses the call. */
export type GuardCheck = (request: object, response: object) => Promise<void>;

/** Nest's `ExternalContextCreator`, whose method runs guards. */
interface ContextCreator {
  create(
    instance: object,
    handler: () => boolean,
    name: string,
    parametersKey: undefined,
    parameters: undefined,
    contextId: undefined,
    inquirerId: undefined,
    kinds: { readonly guards: true; readonly interceptors: false; readonly filters: false },
    type: "http",
  ): (request: object, response: object) => Promise<unknown>;
}

/**
 * Returns the checks for all RPCs with guards, by procedure.
 *
 * @throws Error for guards that Nest creates for each request, because RPCs have no Nest request
 */
export function createGuardChecks(
  configuration: NestConfiguration,
  container: NestContainer,
  providers: readonly RpcProvider[],
): ReadonlyMap<string, GuardCheck> {
  const guards = enhancersOf("Guards", configuration, providers);
  const scoped = guards.filter(({ declared, isScoped }) => isScoped || !isSingleton(declared, container));
  if (scoped.length > 0) {
    const labels = scoped.map(({ label }) => label).join(", ");
    throw new Error(`Nest runs only guards that are singletons for RPCs: ${labels}. Remove their scope`);
  }
  const creator = contextCreatorOf(container);
  const checks = new Map<string, GuardCheck>();
  for (const provider of providers) {
    for (const { localName, name, parent } of provider.service.methods) {
      if (enhancersOf("Guards", configuration, [{ ...provider, methods: [localName] }]).length === 0) continue;
      checks.set(`/${parent.typeName}/${name}`, createCheck(creator, provider.instance, localName));
    }
  }
  return checks;
}

/** Returns whether a guard is an object, or a class that Nest has created once. */
function isSingleton(declared: unknown, container: NestContainer): boolean {
  if (typeof declared !== "function") return true;
  const wrappers = [...container.getModules().values()].flatMap(({ injectables }) => injectables.get(declared) ?? []);
  return wrappers.length > 0 && wrappers.every((each) => !each.isTransient && each.isDependencyTreeStatic());
}

function contextCreatorOf(container: NestContainer): ContextCreator {
  // The class is found by name, because each @nestjs/core copy has a different class.
  for (const [token, { instance }] of container.getInternalCoreModuleRef().providers) {
    const isCreator = typeof token === "function" && token.name === "ExternalContextCreator";
    if (isCreator && isContextCreator(instance)) return instance;
  }
  throw new Error("this version of Nest has no ExternalContextCreator, which runs guards");
}

function isContextCreator(instance: unknown): instance is ContextCreator {
  return typeof instance === "object" && instance !== null && "create" in instance;
}

function createCheck(creator: ContextCreator, instance: object, name: string): GuardCheck {
  const kinds = { guards: true, interceptors: false, filters: false } as const;
  const handler = copyOfHandler(Reflect.get(instance, name), name);
  const run = creator.create(instance, handler, name, undefined, undefined, undefined, undefined, kinds, "http");
  return async (request, response) => {
    try {
      await run(request, response);
    } catch (error) {
      throw fromHttpException(error) ?? error;
    }
  };
}

/** Returns a function with a handler's metadata, which guards read. The function does not call the handler. */
function copyOfHandler(handler: object, name: string): () => boolean {
  const copy = Object.defineProperty((): boolean => true, "name", { value: name });
  const keys: readonly unknown[] = Reflect.get(Reflect, "getMetadataKeys")(handler);
  for (const key of keys) {
    const value: unknown = Reflect.get(Reflect, "getMetadata")(key, handler);
    Reflect.get(Reflect, "defineMetadata")(key, value, copy);
  }
  return copy;
}
