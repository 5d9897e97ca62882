import {
  createRegistry,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { filesOf } from "../protobuf/index.ts";

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/**
 * Creates the implementation for `grpc.reflection.v1.ServerReflection`. The implementation also works for
 * `grpc.reflection.v1alpha`, which tools such as ghz and grpcio-reflection use.
 *
 * A request with an unknown name gets an error response, and the stream continues. Requests are handled one at a time,
 * so a client that does not read its responses gets no further responses.
 */
export function createReflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const index = new DescriptorIndex(services);
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: respondToQuery(request, index) };
      }
    },
  };
}

function respondToQuery(
  { messageRequest: query }: ServerReflectionRequest,
  index: DescriptorIndex,
): ReflectionResponse {
  switch (query.case) {
    case "fileByFilename":
      return fileResponse(index.fileNamed(query.value), query.value);
    case "fileContainingSymbol":
      return fileResponse(index.fileDeclaring(query.value), query.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = query.value;
      return fileResponse(index.fileExtending(containingType, extensionNumber), `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbersOf(query.value);
      if (extensionNumber === undefined) return errorResponse(Code.NotFound, `unknown type ${query.value}`);
      const value = { baseTypeName: query.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value };
    }
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    default:
      return errorResponse(Code.InvalidArgument, "unknown reflection request");
  }
}

function fileResponse(fileDescriptorProto: Uint8Array[] | undefined, name: string): ReflectionResponse {
  if (fileDescriptorProto === undefined) return errorResponse(Code.NotFound, `${name} not found`);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function errorResponse(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/**
 * An index of service descriptors by the names that reflection uses.
 *
 * Files are returned as serialized `FileDescriptorProto`s. The result contains the requested file first, and then all
 * direct and indirect imports, so that a tool needs no further request.
 */
class DescriptorIndex {
  readonly services: readonly string[];
  readonly #files: ReadonlyMap<string, DescFile>;
  readonly #types: Registry;

  constructor(services: readonly DescService[]) {
    this.services = services.map(({ typeName }) => typeName);
    const files = [...filesOf(services)];
    this.#files = new Map(files.map((file) => [file.proto.name, file]));
    this.#types = createRegistry(...files);
  }

  /** Finds a file by its name, such as "orders/v1/orders.proto". */
  fileNamed(name: string): Uint8Array[] | undefined {
    return serializeFile(this.#files.get(name));
  }

  /** Finds the file that declares a type, a service, an extension, or a member of a type or service. */
  fileDeclaring(symbol: string): Uint8Array[] | undefined {
    // A method or a field is declared in the file of its parent, such as "pkg.Service" for "pkg.Service.Method".
    const [, parentName = "", name] = memberName.exec(symbol) ?? [];
    return serializeFile((this.#types.get(symbol) ?? this.#parentWith(parentName, name))?.file);
  }

  /** Finds the file that declares an extension of a message. */
  fileExtending(messageName: string, extensionNumber: number): Uint8Array[] | undefined {
    const extended = this.#types.getMessage(messageName);
    return serializeFile(extended && this.#types.getExtensionFor(extended, extensionNumber)?.file);
  }

  /** Returns the numbers of all message extensions, or `undefined` if the message is unknown. */
  extensionNumbersOf(messageName: string): number[] | undefined {
    if (this.#types.getMessage(messageName) === undefined) return undefined;
    return [...this.#types].flatMap((type) =>
      type.kind === "extension" && type.extendee.typeName === messageName ? [type.number] : [],
    );
  }

  #parentWith(parentName: string, name: string | undefined): { readonly file: DescFile } | undefined {
    const parent = this.#types.get(parentName);
    const isMember =
      (parent?.kind === "service" && parent.methods.some((method) => method.name === name)) ||
      (parent?.kind === "message" && parent.fields.some((field) => field.name === name)) ||
      (parent?.kind === "enum" && parent.values.some((value) => value.name === name));
    return isMember ? parent : undefined;
  }
}

/** Matches the full name of a member. The groups are its parent's full name and its own name. */
const memberName = /^(.+)\.([^.]+)$/s;

function serializeFile(file: DescFile | undefined): Uint8Array[] | undefined {
  if (file === undefined) return undefined;
  return [...filesOf([{ file }])].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
}
