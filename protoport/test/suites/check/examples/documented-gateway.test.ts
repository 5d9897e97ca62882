import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFileRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createGateway } from "../../../../gateway/src/index.ts";
import { compileRestRoutes } from "../../../../gateway/src/protocols/rest/rules/index.ts";
import { printPathTemplate } from "../../../../gateway/src/protocols/rest/rules/path-template.ts";
import { OrderService } from "../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { exchangeHttp1 } from "@protoport/testing/http";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// protoport/docs/reference/rest.md has three blocks that are neither commands nor programs: a rule, a response and an error.

function blockOf(language: string): string {
  const blocks = blocksRunBy("protoport/test/suites/check/examples/documented-gateway.test.ts").filter(
    (block) => block.language === language,
  );
  expect(blocks).toHaveLength(1);
  return blocks[0]?.text ?? "";
}

function compileService(definition: string): DescService {
  using folder = createTempFolder();
  mkdirSync(folder.file("shop"));
  cpSync(join(projectFolder, "protoport/gateway/proto/google"), folder.file("google"), { recursive: true });
  writeFileSync(folder.file("buf.yaml"), "version: v2\n");
  writeFileSync(folder.file("shop/shop.proto"), definition);
  const output = folder.file("definition.binpb");
  execFileSync("buf", ["build", "--as-file-descriptor-set", "-o", output], { cwd: folder.path });
  const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(output)));
  const [service] = [...files].filter((type) => type.kind === "service");
  if (service === undefined) throw new Error("the definition has no service");
  return service;
}

function definitionOf(...lines: readonly string[]): string {
  const head = ['syntax = "proto3";', "package shop.v1;", 'import "google/api/annotations.proto";'];
  return [...head, ...lines].join("\n");
}

test("the documented HTTP rule compiles to two routes", () => {
  const service = compileService(
    definitionOf(
      "message Book { string name = 1; }",
      "message UpdateBookRequest { Book book = 1; }",
      `service Books { ${blockOf("proto")} }`,
    ),
  );
  const { bindings } = compileRestRoutes(service.methods);
  const routes = bindings.map(({ pattern, template }) => [
    pattern.httpMethod,
    printPathTemplate(template),
    pattern.body,
  ]);
  expect(routes).toEqual([
    ["PATCH", "/v1/{book.name=shelves/*/books/*}", "book"],
    ["POST", "/v1/books:import", "*"],
  ]);
});

test("the gateway responds with the documented error", async () => {
  const gateway = createGateway({ routes: (router) => router.service(OrderService, { deleteOrder: () => ({}) }) });
  try {
    const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
    const response = await exchangeHttp1(address, { httpMethod: "DELETE", path: "/orders/007", header: [] });
    const [head = "", body] = blockOf("http").split("\n\n");
    const [statusLine = "", ...fields] = head.split("\n");
    expect(response.head.startsWith(`${statusLine}\r\n`)).toBe(true);
    expect(response.header.map(([name, value]) => `${name}: ${value}`)).toEqual(expect.arrayContaining(fields));
    expect(response.body.toString()).toBe(body);
  } finally {
    await gateway.close();
  }
});

test("createGateway throws the documented error for invalid rules", () => {
  const service = compileService(
    definitionOf(
      "message GetBookRequest { string name = 1; string id = 2; }",
      "message ListBooksRequest { string shelf = 1; }",
      "message Books {}",
      "service Shop {",
      "  rpc GetBook(GetBookRequest) returns (Books) {",
      '    option (google.api.http) = { get: "/v1/{nmae=books/*}" additional_bindings { get: "/v1/books/{id}" } };',
      "  }",
      "  rpc ListBooks(ListBooksRequest) returns (Books) {",
      '    option (google.api.http) = { get: "/v1/books/{shelf}" };',
      "  }",
      "}",
    ),
  );
  expect(() => createGateway({ routes: (router) => router.service(service, {}) })).toThrow(
    expect.objectContaining({ message: blockOf("text") }),
  );
});
