import { describe, expect, test } from "vitest";
import { exchangeHttp1, shared, startKitchenSink } from "@protoport/testing";

// What clients of grpc-gateway send that no single option's test covers.

describe("the profile grpc-gateway", () => {
  const gateway = shared(() => startKitchenSink({ nameOptions: false, rest: { profile: "grpc-gateway" } }));
  const send = async (request: string): Promise<{ httpStatus: number; message: unknown }> => {
    const [httpMethod = "", path = ""] = request.split(" ");
    const { httpStatus, body } = await exchangeHttp1(gateway.address, { httpMethod, path, header: [] });
    const { message }: { message?: unknown } = JSON.parse(String(body));
    return { httpStatus, message };
  };

  test.each([
    { name: "f_float.nested", field: "f_float" },
    { name: "fFloat.nested", field: "f_float" },
    { name: "f_enum.nested.deeper", field: "f_enum" },
    { name: "tags.0", field: "tags" },
    { name: "nesteds.text", field: "nesteds" },
    { name: "labels.color", field: "labels" },
    { name: "nested.text.size", field: "text" },
  ])("refuses the parameter $name, because $field is not a message", async ({ name, field }) => {
    expect(await send(`GET /v1/query?unheard=1&${name}=x`)).toEqual({
      httpStatus: 400,
      message: `query parameter "${name}" is not valid: ${field} is not a message`,
    });
  });

  test.each([
    { name: "nested.unheard", why: "a newer version of Nested may have the field" },
    { name: "unheard.nested", why: "a newer version of the request may have the message" },
    { name: "time.unheard", why: "Timestamp is a message" },
    { name: "child.nested.unheard.more", why: "a newer version of a nested message may have the field" },
  ])("ignores the parameter $name ($why)", async ({ name }) => {
    expect(await send(`GET /v1/query?${name}=x`)).toEqual({ httpStatus: 200, message: undefined });
  });

  test("ignores a parameter below a scalar field that the path sets", async () =>
    expect(await send("GET /v1/verbs/a?f_string.nested=x")).toEqual({ httpStatus: 200, message: undefined }));
});
