import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ServerReflectionResponseSchema } from "../../../gateway/src/protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { createTestGateway } from "./test-gateway.ts";
import { ServerReflection } from "../../../gateway/src/reflection/index.ts";

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/** A server with only reflection. Dispose of the server with `await using`. */
interface ReflectingServer {
  readonly address: string;
  /** The files that the server's reflection returns. */
  files: readonly MessageInitShape<typeof FileDescriptorProtoSchema>[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a server whose reflection returns files unchanged, one at a time. The files may be invalid or incomplete. */
export async function startReflectingServer(files: ReflectingServer["files"]): Promise<ReflectingServer> {
  const gateway = createTestGateway({
    routes: (router) => {
      router.service(ServerReflection, {
        async *serverReflectionInfo(requests) {
          for await (const { messageRequest } of requests) yield { messageResponse: respond(messageRequest) };
        },
      });
    },
  });
  const respond = (request: { readonly case?: string | undefined; readonly value?: unknown }): ReflectionResponse => {
    const known = server.files.map((file) => create(FileDescriptorProtoSchema, file));
    const services = known.flatMap((file) => servicesOf(file).map((name) => ({ name, file })));
    if (request.case === "listServices")
      return { case: "listServicesResponse", value: { service: services.map(({ name }) => ({ name })) } };
    const found =
      request.case === "fileByFilename"
        ? known.find(({ name }) => name === request.value)
        : services.find(({ name }) => name === request.value)?.file;
    if (found === undefined) return { case: "errorResponse", value: { errorCode: 5, errorMessage: "not found" } };
    const fileDescriptorProto = [toBinary(FileDescriptorProtoSchema, found)];
    return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
  };
  const { port } = await gateway.listen({ host: "127.0.0.1" });
  const server = { address: `127.0.0.1:${port}`, files, [Symbol.asyncDispose]: () => gateway.close() };
  return server;
}

const servicesOf = ({ package: name, service }: FileDescriptorProto): string[] =>
  service.map((each) => (name === "" ? each.name : `${name}.${each.name}`));
