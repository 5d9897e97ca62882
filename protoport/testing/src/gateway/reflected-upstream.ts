// oxfmt-ignore
import { create, createFileRegistry, type DescService, type MessageInitShape, setExtension, toBinary
} from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, type FileDescriptorProto, FileDescriptorProtoSchema,
  FileDescriptorSetSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { http } from "../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { createGateway, type Gateway } from "../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../gateway/src/reflection/index.ts";
// oxfmt-ignore
import type { ServerReflectionResponseSchema
} from "../../../gateway/src/protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { createTestGateway } from "./test-gateway.ts";

/** Each RPC's REST routes by name, such as `{ Get: ["GET /v1/orders/{id}"] }`. */
export type RouteTexts = Readonly<Record<string, readonly string[]>>;

/** Returns a service with RPCs whose annotations are these routes. Requests have the fields `id` and `sub`. */
export function serviceWithRoutes(typeName: string, routes: RouteTexts): DescService {
  const dot = typeName.lastIndexOf(".");
  const packageName = typeName.slice(0, dot);
  const method = Object.entries(routes).map(([name, texts]) => {
    const [rule, ...additionalBindings] = texts.map((text) => {
      const [kind = "", path = ""] = text.split(" ");
      return create(HttpRuleSchema, { pattern: { case: "custom", value: { kind, path } } });
    });
    const options = create(MethodOptionsSchema);
    if (rule !== undefined) setExtension(options, http, { ...rule, additionalBindings });
    const type = `.${packageName}.${typeName.slice(dot + 1)}Message`;
    return { name, inputType: type, outputType: type, options };
  });
  const field = { type: FieldDescriptorProto_Type.STRING, label: FieldDescriptorProto_Label.OPTIONAL };
  const fields = ["id", "sub"].map((name, at) => ({ ...field, name, jsonName: name, number: at + 1 }));
  const file = create(FileDescriptorProtoSchema, {
    name: `${typeName}.proto`,
    package: packageName,
    syntax: "proto3",
    messageType: [{ name: `${typeName.slice(dot + 1)}Message`, field: fields }],
    service: [{ name: typeName.slice(dot + 1), method }],
  });
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService(typeName);
  if (service === undefined) throw new TypeError(`${typeName} is not declared`);
  return service;
}

/** A gRPC server with reflection, which records the calls that it gets. */
export class ReflectedUpstream implements AsyncDisposable {
  /** The received calls, each as the RPC's name and the call's credential. */
  readonly calls: string[] = [];
  #services: readonly DescService[] = [];
  #gateway: Gateway | undefined;
  #port = 0;

  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The host and port, as in the proxy's messages. */
  get authority(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Offers other services. The proxy gets the new services when it next reads the reflection. */
  offer(...services: readonly DescService[]): void {
    this.#services = services;
  }

  /** Listens on the same port each time. */
  async start(): Promise<void> {
    this.#gateway = createGateway({
      routes: (router) => {
        router.service(ServerReflection, {
          serverReflectionInfo: (requests, context) =>
            createReflectionService(this.#services).serverReflectionInfo(requests, context),
        });
        for (const service of this.#services) {
          const handlers = service.methods.map(({ name, localName }) => [
            localName,
            (_: unknown, context: HandlerContext) => this.#record(name, context),
          ]);
          router.service(service, Object.fromEntries(handlers));
        }
      },
      // The routes have no effect, because the proxy calls over gRPC.
      rest: {
        omit: this.#services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}.${name}`)),
      },
    });
    this.#port = (await this.#gateway.listen({ host: "127.0.0.1", port: this.#port })).port;
  }

  async stop(): Promise<void> {
    await this.#gateway?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #record(name: string, { requestHeader }: HandlerContext): object {
    this.calls.push(`${name} ${requestHeader.get("authorization")}`);
    return {};
  }
}

export async function startReflectedUpstream(...services: readonly DescService[]): Promise<ReflectedUpstream> {
  const upstream = new ReflectedUpstream();
  upstream.offer(...services);
  await upstream.start();
  return upstream;
}

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
