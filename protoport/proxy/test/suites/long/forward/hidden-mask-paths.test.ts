import { createFileRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FieldOptionsSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { createTestGateway, descriptorSetOf, errorOf, restrictedTo } from "@protoport/testing/proxy";
import { file_kitchensink_v1_shelves, Shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { createProxy } from "../../../../src/create-proxy.ts";

// Update masks that name hidden fields, in a gateway and in a proxy. The fields `theme` and `room` are hidden.

function restrictedShelves(): Uint8Array {
  const proto = structuredClone(file_kitchensink_v1_shelves.proto);
  const messages = proto.messageType.flatMap((message) => [message, ...message.nestedType]);
  for (const field of messages.flatMap((message) => message.field))
    if (["theme", "room"].includes(field.name))
      field.options = restrictedTo("INTERNAL", FieldOptionsSchema, field.options);
  return descriptorSetOf({ ...file_kitchensink_v1_shelves, proto });
}

const descriptors = restrictedShelves();
const linked = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors)).getService(Shelves.typeName);
const restricted = linked !== undefined && isShelves(linked) ? linked : Shelves;
const visibility = { allow: [] };

function isShelves(service: DescService): service is typeof Shelves {
  return service.typeName === Shelves.typeName;
}

const received: (readonly string[])[] = [];
const response = {
  shelf: { name: "shelves/1" },
  updateMask: { paths: ["theme", "name", "place.room", "place.floor"] },
};

const routesOf =
  (service: typeof Shelves) =>
  (router: ConnectRouter): ConnectRouter =>
    router.service(service, {
      updateShelf: ({ updateMask }) => {
        received.push(updateMask?.paths ?? []);
        return response;
      },
    });

const upstream = createTestGateway({ routes: routesOf(Shelves) });
let upstreamUrl: string;
beforeAll(async () => {
  upstreamUrl = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1", port: 0 })).port}`;
});
afterAll(() => upstream.close());

const openers = {
  gateway: () => Promise.resolve(createGateway({ routes: routesOf(restricted), visibility })),
  proxy: () => createProxy({ upstreams: [{ upstream: upstreamUrl, descriptors }], visibility }),
};

describe.each(Object.entries(openers))("an update mask in a %s", (_, open) => {
  let close: () => Promise<void>;
  let baseUrl: string;
  beforeAll(async () => {
    const opened = await open();
    baseUrl = `http://127.0.0.1:${(await opened.listen({ host: "127.0.0.1", port: 0 })).port}`;
    close = () => opened.close();
  });
  afterAll(() => close());

  const transports: readonly (readonly [string, () => Transport])[] = [
    ["gRPC", () => createGrpcTransport({ baseUrl })],
    ["Connect", () => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false })],
  ];

  test.each(transports)(
    "over %s, a path to a hidden field or to its message is refused like an unknown path",
    async (_name, transport) => {
      received.length = 0;
      const client = createClient(Shelves, transport());
      const update = async (path: string): Promise<string> => {
        const error = await errorOf(client.updateShelf({ shelf: {}, updateMask: { paths: ["name", path] } }));
        expect(error.code).toBe(Code.InvalidArgument);
        return error.rawMessage.replaceAll(path, "PATH");
      };
      const unknown = await update("nothing");
      const hidden = ["theme", "place.room", "place.behind.room", "former_places.*.room", "place.nothing"];
      for (const path of [...hidden, "*", "place", "place.behind", "former_places", "former_places.*"])
        expect(await update(path)).toBe(unknown);
      expect(received).toEqual([]);
    },
  );

  test.each(transports)("over %s, a response lacks the paths of hidden fields", async (_name, transport) => {
    received.length = 0;
    const paths = ["name", "labels.theme", "former_places.*.floor", "notes.theme", "built_at.seconds"];
    const { updateMask } = await createClient(Shelves, transport()).updateShelf({ shelf: {}, updateMask: { paths } });
    expect(updateMask?.paths).toEqual(["name", "place.floor"]);
    expect(received).toEqual([paths]);
  });

  test("over REST, a hidden field's path is refused like an unknown path", async () => {
    const update = async (path: string): Promise<string> => {
      const answer = await fetch(`${baseUrl}/v1/shelves/1?updateMask=${path}`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      return `${answer.status} ${(await answer.text()).replaceAll(path, "PATH")}`;
    };
    expect(await update("theme")).toBe(await update("nothing"));
    expect(await update("theme")).toMatch(/^400/);
    expect(await update("name")).toMatch(/^200/);
  });
});
