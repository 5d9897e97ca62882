import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";

/** The enhancer kinds, which Nest runs before and after a controller's handler. */
type EnhancerKind = "Filters" | "Guards" | "Interceptors" | "Pipes";

/** The keys under which decorators in Nest 11 and 12 store enhancers (`@nestjs/common/constants`). */
const metadataKeys: Readonly<Record<EnhancerKind, string>> = {
  Filters: "__exceptionFilters__",
  Guards: "__guards__",
  Interceptors: "__interceptors__",
  Pipes: "__pipes__",
};

// Nest loads reflect-metadata, which adds `getMetadata` to `Reflect`.

/** The key under which parameter decorators, such as `@Body(pipe)`, store their pipes. */
const parametersKey = "__routeArguments__";

/** A provider in a module, as Nest stores it. */
export interface InstanceWrapper {
  readonly instance: unknown;
  readonly name: unknown;
  readonly scope?: number;
  readonly isTransient: boolean;
  isDependencyTreeStatic(): boolean;
  /** Returns the providers that the constructor gets. This method and the next two return `undefined` without any. */
  getCtorMetadata(): readonly InstanceWrapper[] | undefined;
  getPropertiesMetadata(): readonly { readonly wrapper: InstanceWrapper }[] | undefined;
  getEnhancersMetadata(): readonly InstanceWrapper[] | undefined;
}

interface NestModule {
  readonly providers: ReadonlyMap<unknown, InstanceWrapper>;
  readonly injectables: ReadonlyMap<unknown, InstanceWrapper>;
  /** The middleware that the module configures, by class. */
  readonly middlewares: Map<object, unknown>;
}

/** Nest's module container. */
export interface NestContainer {
  getInternalCoreModuleRef(): NestModule;
  getModules(): ReadonlyMap<string, NestModule>;
}

/** An enhancer that is declared for RPCs. */
export interface Enhancer {
  readonly declared: unknown;
  /** Whether Nest creates this global enhancer for each request. */
  readonly isScoped: boolean;
  /** The enhancer's class name and where it is declared, such as "RolesGuard of Greenhouse". */
  readonly label: string;
}

/** A class that implements RPCs, with its instance, and the method names that are RPCs. */
export interface RpcProvider {
  readonly type: new (...dependencies: never[]) => object;
  readonly service: DescService;
  readonly instance: object;
  readonly methods: readonly string[];
}

/** A Nest application's configuration, an `ApplicationConfig`. */
export interface NestConfiguration {
  readonly config: object;
}

/** A Nest application's configuration and container, which contain the enhancers. */
export interface NestApplication {
  readonly configuration: NestConfiguration;
  readonly container: NestContainer;
}

/** Returns an application's configuration and container. @throws TypeError if `app` is not a Nest application */
export function applicationOf(app: object): NestApplication {
  // `config` and `container` are private members of Nest, but @nestjs/swagger reads both members, too. Dependency
  // injection would require the application's Nest classes.
  const config: unknown = Reflect.get(app, "config");
  const container: NestContainer | undefined = Reflect.get(app, "container");
  const isConfiguration = typeof config === "object" && config !== null && "getGlobalGuards" in config;
  if (isConfiguration && container !== undefined) return { configuration: { config }, container };
  throw new TypeError("mount requires the application that NestFactory.create returns");
}

/** Returns all enhancers of a kind that apply to RPCs: enhancers of providers, of methods, and global enhancers. */
export function enhancersOf(
  kind: EnhancerKind,
  { config }: NestConfiguration,
  providers: readonly RpcProvider[],
): Enhancer[] {
  const key = metadataKeys[kind];
  const declared = providers.flatMap(({ type, instance, methods }) => [
    ...listIn(type, key).map((item) => describeEnhancer(item, `of ${classNameOf(type)}`)),
    ...methods.flatMap((method) => {
      const items = listIn(Reflect.get(instance, method), key);
      const pipes = kind === "Pipes" ? parameterPipes(type, method) : [];
      return [...items, ...pipes].map((item) => describeEnhancer(item, `of ${classNameOf(type)}.${method}`));
    }),
  ]);
  const forAll = globalsOf(config, `getGlobal${kind}`).map((item) => describeEnhancer(item, "(global)"));
  // Nest has not created request-scoped enhancers yet. `metatype` is the class or factory.
  const forRequests = globalsOf(config, `getGlobalRequest${kind}`).map((wrapper) =>
    describeEnhancer(Reflect.get(wrapper, "metatype"), "(global)", true),
  );
  return [...declared, ...forAll, ...forRequests];
}

/** Returns the global enhancers from an `ApplicationConfig` getter, without the empty results of factories. */
function globalsOf(config: object, getter: string): object[] {
  const items: readonly (object | null | undefined)[] = Reflect.get(config, getter).call(config);
  return items.filter((item) => item !== null && item !== undefined);
}

function parameterPipes(type: object, method: string): unknown[] {
  const parameters: object = Reflect.get(Reflect, "getMetadata")(parametersKey, type, method) ?? {};
  return Object.values(parameters).flatMap(({ pipes = [] }) => pipes);
}

// A class inherits the enhancers of its base class.
function listIn(target: object, key: string): readonly unknown[] {
  const items: readonly unknown[] | undefined = Reflect.get(Reflect, "getMetadata")(key, target);
  return items ?? [];
}

function describeEnhancer(declared: unknown, place: string, isScoped = false): Enhancer {
  const type: unknown = typeof declared === "object" && declared !== null ? declared.constructor : declared;
  return { declared, isScoped, label: `${classNameOf(type)} ${place}` };
}

function classNameOf(type: unknown): string {
  return (typeof type === "function" && type.name) || "an unnamed class";
}

/** The codes for Nest's exceptions, by their HTTP status. */
const codeOfNestStatus: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.AlreadyExists,
  412: Code.FailedPrecondition,
  422: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  501: Code.Unimplemented,
  503: Code.Unavailable,
};

/** Returns the error for a Nest `HttpException` with a status in `codeOfNestStatus`, and `undefined` for any other error. */
export function fromHttpException(error: unknown): ConnectError | undefined {
  if (!(error instanceof Error) || !("getStatus" in error) || typeof error.getStatus !== "function") return undefined;
  const code = codeOfNestStatus[Number(error.getStatus())];
  return code === undefined ? undefined : new ConnectError(error.message, code, undefined, undefined, error);
}
