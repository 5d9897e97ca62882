import { expect, test } from "vitest";
import { createGateway } from "../../../gateway/src/index.ts";
import { createGrpcJsServices } from "../../src/grpc-js.ts";
import { loadFiles } from "../load-files.ts";

// Timestamps as ts-proto writes dates before 1970 with milliseconds, whose `nanos` are negative.

const definition = loadFiles(
  {
    "shop.proto": `package shop; import "google/protobuf/timestamp.proto"; import "google/api/annotations.proto";
      import "google/protobuf/struct.proto";
      message Customer { google.protobuf.Timestamp born = 1; repeated google.protobuf.Timestamp visits = 2;
        map<string, google.protobuf.Timestamp> orders = 3; Customer parent = 4;
        oneof end { google.protobuf.Timestamp left = 5; string reason = 6; }
        google.protobuf.Struct notes = 7; }
      service Shop { rpc Get(Customer) returns (Customer) { option (google.api.http) = { get: "/customer" }; }
        rpc Now(Customer) returns (google.protobuf.Timestamp) { option (google.api.http) = { get: "/now" }; } }`,
  },
  "shop.proto",
);

const early = { seconds: -1, nanos: -500_000_000 };
const printed = "1969-12-31T23:59:58.500Z";

test.each<{ name: string; path: string; response: object; want: unknown }>(
  // oxfmt-ignore
  [
    { name: "a field", path: "/customer", response: { born: early }, want: { born: printed } },
    { name: "a list", path: "/customer",
      response: { visits: [early, { seconds: 0, nanos: -1 }, { seconds: 1, nanos: 5_000_000 }] },
      want: { visits: [printed, "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:01.005Z"] } },
    { name: "a map", path: "/customer", response: { orders: { a: early } }, want: { orders: { a: printed } } },
    { name: "a oneof", path: "/customer", response: { left: early }, want: { left: printed } },
    { name: "another member of a oneof", path: "/customer", response: { reason: "moved" }, want: { reason: "moved" } },
    { name: "a message with JSON that resembles a timestamp", path: "/customer",
      response: { born: early, notes: { fields: { $typeName: { stringValue: "google.protobuf.Timestamp" },
        seconds: { numberValue: 1 }, nanos: { numberValue: -5 } } } },
      want: { born: printed, notes: { $typeName: "google.protobuf.Timestamp", seconds: 1, nanos: -5 } } },
    { name: "a recursive message", path: "/customer", response: { parent: { parent: { born: early } } },
      want: { parent: { parent: { born: printed } } } },
    { name: "the response itself", path: "/now", response: early, want: printed },
  ],
)("a negative timestamp in $name is sent as a valid one", async ({ path, response, want }) => {
  const services = createGrpcJsServices();
  const respond = (_call: unknown, callback: (error: null, value: object) => void): void => callback(null, response);
  services.addService(Object(definition["shop.Shop"]), { get: respond, now: respond });
  const { status, json } = await createGateway({ routes: services.routes })
    .fetch(new Request(`http://localhost${path}`))
    .then(async (each) => ({ status: each.status, json: await each.json() }));
  expect([status, json]).toEqual([200, want]);
});
