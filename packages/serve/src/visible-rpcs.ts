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
import { HiddenParts, hideInFiles, type PartlyVisible, type VisibilityOptions } from "@plantstore/protobuf";
import { convertStream } from "./stream-messages.ts";

type BinaryOptions = ConnectRouterOptions["binaryOptions"];

/**
 * The visible part of services. Protocols read and write messages by its descriptors, so what is hidden does not exist
 * for callers. Interceptors and handlers keep the descriptors and messages with which they were registered.
 */
export class VisibleRpcs {
  /** Removes what is hidden from messages. Returns `undefined` if no message has a hidden part. */
  readonly hidden: HiddenParts | undefined;
  /** The hidden services and RPCs, by full name. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels that rules have. */
  readonly labels: ReadonlySet<string>;
  readonly #services: ReadonlySet<DescService>;
  readonly #types: Registry;
  readonly #fileNames: ReadonlySet<string>;

  /**
   * @param registries - the types that JSON may name, in addition to those of the services
   * @param definitions - the visible part of other services
   * @throws Error if an enum's first value is hidden, or two files with the same name differ
   */
  constructor(
    services: readonly DescService[],
    registries: ReadonlySet<Registry>,
    definitions: readonly PartlyVisible[] | undefined,
    visibility: VisibilityOptions,
    binaryOptions: BinaryOptions,
  ) {
    const described = [...services, ...[...registries].flatMap((registry) => [...registry])];
    const { types, restricted, hiddenRpcs, labels, fileNames } = hideInFiles(described, visibility);
    this.hiddenRpcs = hiddenRpcs;
    this.labels = labels;
    this.#services = new Set(services);
    this.#types = types;
    this.#fileNames = fileNames;
    this.hidden = HiddenParts.of([{ types, restricted }, ...(definitions ?? [])], binaryOptions?.recursionLimit);
  }

  /** Returns the visible part of an RPC, or `undefined` if the RPC is hidden. RPCs in other services are unchanged. */
  partOf<Method extends DescMethod>(method: Method): Method | undefined {
    if (!this.#services.has(method.parent)) return method;
    const methods = this.#types.getService(method.parent.typeName)?.methods;
    return methods?.find(({ name }) => name === method.name) as Method | undefined;
  }

  /** Returns a registry's visible types. */
  registryOf(registry: Registry): Registry {
    const visible = [...registry].flatMap((type) =>
      this.#fileNames.has(type.file.proto.name) ? (this.#types.get(type.typeName) ?? []) : [type],
    );
    return createRegistry(...visible);
  }

  /**
   * Returns an interceptor, the outermost one, that converts messages between their visible part and what the next
   * interceptor expects, or `undefined` if the RPC's messages have no hidden part.
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
