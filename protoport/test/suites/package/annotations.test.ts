import { rmSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { buf, createUserProject, packed } from "../../support/package/user-project.ts";

// The googleapis files that definitions import, from the gateway's package, and others from npm.

const blocks = blocksRunBy("protoport/test/suites/package/annotations.test.ts");
const textsOf = (language: string): readonly string[] =>
  blocks.filter((block) => block.language === language).map(({ text }) => text);
const [yamlOfGateway = "", yamlOfGoogleApis = ""] = textsOf("yaml");
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

test("buf finds the annotations in the gateway's package and reports no problems", () => {
  const project = createUserProject();
  folders.push(project.path);
  project.run("npm", "install", "--no-audit", "--no-fund", packed()["@protoport/gateway"]);
  project.write("buf.yaml", yamlOfGateway);
  project.write(
    "proto/shop/v1/shop.proto",
    `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
import "google/api/field_behavior.proto";
import "google/api/httpbody.proto";
message GetCoverRequest { string name = 1 [(google.api.field_behavior) = REQUIRED]; }
message GetCoverResponse { google.api.HttpBody cover = 1; }
service ShopService {
  rpc GetCover(GetCoverRequest) returns (GetCoverResponse) {
    option (google.api.http) = { get: "/v1/{name=books/*}/cover" response_body: "cover" };
  }
}
`,
  );
  expect([project.tryToRun("buf", "lint"), project.run("buf", "build", "-o", "set.json")]).toEqual(["", ""]);
  expect(project.run("cat", "set.json")).toContain('"get":"/v1/{name=books/*}/cover"');
});

test("the gateway serves an AIP definition with imports installed from npm", () => {
  const project = createUserProject();
  folders.push(project.path);
  project.run("npm", "install", "--no-audit", "--no-fund", packed()["@protoport/gateway"], buf);
  project.write("buf.yaml", yamlOfGoogleApis);
  project.write(
    "buf.gen.yaml",
    "version: v2\nplugins:\n  - {local: protoc-gen-es, out: gen, opt: [target=js, import_extension=js]}\n",
  );
  project.write(
    "proto/shop/v1/shop.proto",
    `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
import "google/api/client.proto";
import "google/api/field_behavior.proto";
import "google/api/field_info.proto";
import "google/api/resource.proto";
import "google/longrunning/operations.proto";
import "google/type/date.proto";
message Book {
  option (google.api.resource) = { type: "shop.example/Book" pattern: "books/{book}" };
  string name = 1 [(google.api.field_behavior) = IDENTIFIER];
  string uid = 2 [(google.api.field_info).format = UUID4];
  google.type.Date published = 3;
}
message GetBookRequest { string name = 1 [(google.api.resource_reference).type = "shop.example/Book"]; }
message GetBookResponse { Book book = 1; }
message PrintBookRequest { string name = 1; }
service BookService {
  option (google.api.default_host) = "shop.example";
  rpc GetBook(GetBookRequest) returns (GetBookResponse) {
    option (google.api.http) = { get: "/v1/{name=books/*}" response_body: "book" };
    option (google.api.method_signature) = "name";
  }
  // buf:lint:ignore RPC_RESPONSE_STANDARD_NAME
  rpc PrintBook(PrintBookRequest) returns (google.longrunning.Operation) {
    option (google.api.http) = { post: "/v1/{name=books/*}:print" body: "*" };
    option (google.longrunning.operation_info) = { response_type: "Book" metadata_type: "Book" };
  }
}
`,
  );
  // "bash" fails if a command fails, which includes problems that "buf lint" finds.
  for (const commands of textsOf("sh")) project.run("bash", "-ec", commands);
  const printed = project.runProgram(`
    import { createGateway } from "@protoport/gateway";
    import { createOpenApi } from "@protoport/gateway/openapi";
    import { BookService } from "./gen/shop/v1/shop_pb.js";
    const routes = (router) => router.service(BookService, {
      getBook: ({ name }) => ({ book: { name, published: { year: 1847 } } }),
      printBook: ({ name }) => ({ name: "operations/" + name }),
    });
    const gateway = createGateway({ routes });
    const { port } = await gateway.listen({ port: 0 });
    const ask = async (path, init) => console.log(await (await fetch("http://127.0.0.1:" + port + path, init)).text());
    await ask("/v1/books/7");
    await ask("/v1/books/7:print", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    console.log(Object.keys(createOpenApi([BookService], { info: { title: "Books", version: "1" } }).paths).join(" "));
    await gateway.close();
  `);
  const lines = ['{"name":"books/7","published":{"year":1847}}', '{"name":"operations/books/7"}'];
  expect(printed.trimEnd().split("\n")).toEqual([...lines, "/v1/books/{book} /v1/books/{book}:print"]);
});
