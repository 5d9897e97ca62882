import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createOpenApi } from "../../src/openapi/create-open-api.ts";
import type { OpenApiSchema } from "../../src/openapi/open-api-document.ts";
import { serviceIn, stringField } from "../../../testing/src/gateway/file-init.ts";

// Schemas of types that several upstreams define.

/** Returns a service whose RPC returns a message with this name, which has one string field and may be nested. */
function serviceReturning(typeName: string, serviceName: string, fieldName: string): DescService {
  const [, packageName = "", outer, name = ""] = /^(?:([a-z\d.]+)\.)?(?:(\w+)\.)?(\w+)$/.exec(typeName) ?? [];
  const message = { name, field: [stringField(fieldName, 1)] };
  const file = {
    name: "definition.proto",
    package: packageName,
    syntax: "proto3",
    messageType: [outer === undefined ? message : { name: outer, nestedType: [message] }],
    service: [{ name: serviceName, method: [{ name: "Get", inputType: `.${typeName}`, outputType: `.${typeName}` }] }],
  };
  return serviceIn(file, packageName === "" ? serviceName : `${packageName}.${serviceName}`);
}

test.each([
  ["shop.v1.Order", "Order"],
  ["shop.v1.Order_Line.Gift_Wrap", "Order_Line.Gift_Wrap"],
  ["Order", "Order"],
  ["google.rpc.Status", "Status"],
])("three definitions of %s have separate schemas, the first with the name %s", (typeName, schemaName) => {
  const names = ["one", "two", "three"];
  const services = names.map((name) => serviceReturning(typeName, `Service${name}`, name));
  const rules = services.map((service, at) => ({
    selector: `${service.typeName}.Get`,
    pattern: { case: "get", value: `/${names[at]}` } as const,
  }));
  const { paths, components } = createOpenApi(services, { info: { title: "", version: "" }, rest: { rules } });
  const fieldsIn = (path: string, status: string): readonly string[] => {
    const { schema = {} } = paths[path]?.get?.responses[status]?.content?.["application/json"] ?? {};
    const found = Object.entries(components?.schemas ?? {}).find(
      ([name]) => schema["$ref"] === `#/components/schemas/${name}`,
    );
    const { properties }: OpenApiSchema = found?.[1] ?? {};
    return Object.keys(Object(properties));
  };
  expect(names.map((name) => fieldsIn(`/${name}`, "200"))).toEqual(names.map((name) => [name]));
  expect(Object.keys(Object(components?.schemas?.[schemaName]?.["properties"]))).toEqual(["one"]);
  expect(fieldsIn("/one", "4XX")).toEqual(["code", "status", "message", "details"]);
});
