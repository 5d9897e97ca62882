import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { DescriptorIndex } from "./descriptor-index.ts";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/**
 * Creates the implementation of `grpc.reflection.v1.ServerReflection` for the given services. It is that of
 * `grpc.reflection.v1alpha`, too, which tools such as ghz and grpcio-reflection ask for.
 *
 * An unknown name gets an error response, and the stream goes on. Requests are answered one at a time, so a client that
 * does not read its responses gets no further ones.
 */
export function createReflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const index = new DescriptorIndex(services);
  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: answerOf(request, index) };
      }
    },
  };
}

function answerOf({ messageRequest: question }: ServerReflectionRequest, index: DescriptorIndex): Answer {
  switch (question.case) {
    case "fileByFilename":
      return fileAnswer(index.fileNamed(question.value), question.value);
    case "fileContainingSymbol":
      return fileAnswer(index.fileDeclaring(question.value), question.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return fileAnswer(index.fileExtending(containingType, extensionNumber), `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbersOf(question.value);
      if (extensionNumber === undefined) return errorAnswer(Code.NotFound, `unknown type ${question.value}`);
      const value = { baseTypeName: question.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value };
    }
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    default:
      return errorAnswer(Code.InvalidArgument, "unknown reflection request");
  }
}

function fileAnswer(fileDescriptorProto: Uint8Array[] | undefined, name: string): Answer {
  if (fileDescriptorProto === undefined) return errorAnswer(Code.NotFound, `${name} not found`);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function errorAnswer(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
