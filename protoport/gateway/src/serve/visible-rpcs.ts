import {
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import type { ConnectRouterOptions, Interceptor } from "@connectrpc/connect";
import { HiddenParts, hideInFiles, type PartlyVisible, type VisibilityOptions } from "../protobuf/index.ts";
import { convertStream } from "./stream-messages.ts";

type BinaryOptions = ConnectRouterOptions["binaryOptions"];

/**
 * The visible elements of services. Protocols read and write messages with the visible descriptors, so hidden elements
 * do not exist for callers. Interceptors and handlers keep the descriptors and messages with which they were
 * registered.
 */
export class VisibleRpcs {
  /** Removes hidden fields and values from messages. `undefined` if no message has hidden fields or values. */
  readonly hidden: HiddenParts | undefined;
  /** The full names of the hidden services and RPCs. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. */
  readonly labels: ReadonlySet<string>;
  readonly #services: ReadonlySet<DescService>;
  readonly #types: Registry;
  readonly #fileNames: ReadonlySet<string>;

  /**
   * @param registries - the types that JSON may name, in addition to the types of the services
   * @param definitions - the visible elements of other services
   * @throws Error if an enum's first value is hidden, or if two files with the same name differ
   */
  constructor(
    services: readonly DescService[],
    registries: ReadonlySet<Registry>,
    definitions: readonly PartlyVisible[] | undefined,
    visibility: VisibilityOptions,
    binaryOptions: BinaryOptions,
  ) {
    const described = [...services, ...[...registries].flatMap((registry) => [...registry])];
    const visible = hideInFiles(described, visibility);
    const { types, hiddenRpcs, labels, fileNames } = visible;
    this.hiddenRpcs = hiddenRpcs;
    this.labels = labels;
    this.#services = new Set(services);
    this.#types = types;
    this.#fileNames = fileNames;
    this.hidden = HiddenParts.of([visible, ...(definitions ?? [])], binaryOptions?.recursionLimit);
  }

  /** Returns an RPC's visible descriptor, or `undefined` for a hidden RPC. RPCs in other services are unchanged. */
  partOf<Method extends DescMethod>(method: Method): Method | undefined {
    if (!this.#services.has(method.parent)) return method;
    const methods = this.#types.getService(method.parent.typeName)?.methods;
    return methods?.find(({ name }) => name === method.name) as Method | undefined;
  }

  registryOf(registry: Registry): Registry {
    const visible = [...registry].flatMap((type) =>
      this.#fileNames.has(type.file.proto.name) ? (this.#types.get(type.typeName) ?? []) : [type],
    );
    return createRegistry(...visible);
  }

  /**
   * Returns the outermost interceptor, which converts messages between the visible types and the registered types.
   * Returns `undefined` if the RPC's messages have no hidden elements.
   */
  converterOf(visible: DescMethod, registered: DescMethod, binaryOptions: BinaryOptions): Interceptor | undefined {
    const { hidden } = this;
    if (!this.#services.has(registered.parent)) return undefined;
    if (hidden?.mayBeIn([visible.input, visible.output]) !== true) return undefined;
    const toRegistered = (message: Message): Message => {
      hidden.removeFromRequest(visible.input, message);
      return retype(message, visible.input, registered.input, binaryOptions);
    };
    // The handler's message is not changed, because the handler may keep it.
    const toVisible = (message: Message): Message => {
      const response = retype(message, registered.output, visible.output, binaryOptions);
      hidden.removeFrom(visible.output, response);
      return response;
    };
    return (next) => async (request) => {
      const response = await next(
        request.stream
          ? { ...request, message: convertStream(request.message, toRegistered) }
          : { ...request, message: toRegistered(request.message) },
      );
      return response.stream
        ? { ...response, message: convertStream(response.message, toVisible) }
        : { ...response, message: toVisible(response.message) };
    };
  }
}

function retype(message: Message, from: DescMessage, to: DescMessage, options: BinaryOptions): Message {
  return fromBinary(to, toBinary(from, message), options);
}
