import { create, createFileRegistry, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema, MessageOptionsSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { isGreenhouse, restrictedServices } from "../../../../../testing/src/gateway/restricted.ts";
import { openValidation } from "../../../../src/validation/index.ts";
import { createFetchGateway } from "../../../../src/fetch/entry.ts";
import { createGateway, type GatewayOptions, type VisibilityOptions, visibleServices } from "../../../../src/index.ts";

// Invalid labels in the option `visibility`, and rules that refer to hidden parts.

const services = restrictedServices();
const greenhouse = services.find(isGreenhouse) ?? GreenhouseService;
const maintenance = services.find(({ name }) => name === "Maintenance") ?? greenhouse;
const json = { "content-type": "application/json" };

const noRoutes: GatewayOptions["routes"] = () => undefined;

test.each<{ owner: string; option: string; open: (visibility: VisibilityOptions) => unknown }>([
  {
    owner: "createGateway",
    option: "visibility.allow[1]",
    open: (visibility) => createGateway({ routes: noRoutes, visibility }),
  },
  {
    owner: "createFetchGateway",
    option: "visibility.allow[1]",
    open: (visibility) => createFetchGateway({ routes: noRoutes, visibility }),
  },
  { owner: "visibleServices", option: "allow[1]", open: (visibility) => visibleServices(services, visibility) },
])("$owner refuses a label that is not a string", ({ owner, option, open }) => {
  const invalid: VisibilityOptions = JSON.parse('{ "allow": ["INTERNAL", 1] }');
  expect(() => open(invalid)).toThrow(`option "${option}" of ${owner} must be a string, got number`);
});

test("HTTP rules and omissions for hidden RPCs are ignored", async () => {
  const rest = {
    rules: [
      { selector: `${greenhouse.typeName}.GetReading`, pattern: { case: "get", value: "/moved/{sensor}" } },
      { selector: `${maintenance.typeName}.Rinse`, pattern: { case: "get", value: "/rinse" } },
    ],
    omit: [`${maintenance.typeName}.Rinse`],
  } as const;
  const routes: GatewayOptions["routes"] = (router) =>
    router.service(greenhouse, { getReading: ({ sensor }) => ({ sensor }) }).service(maintenance, {});
  const statusFor = async (allow: readonly string[]): Promise<number> =>
    (await createGateway({ routes, rest, visibility: { allow } }).fetch(new Request("http://a/moved/4"))).status;
  expect([await statusFor([]), await statusFor(["INTERNAL"])]).toEqual([404, 200]);
});

/** Returns the greenhouse, whose requests to water a bed must have liters or the internal note. */
function ruledGreenhouse(): typeof GreenhouseService {
  const oneof = new BinaryWriter();
  for (const name of ["liters", "note"]) oneof.tag(1, WireType.LengthDelimited).string(name);
  oneof.tag(2, WireType.Varint).bool(true);
  const rules = new BinaryWriter().tag(4, WireType.LengthDelimited).bytes(oneof.finish()).finish();
  const proto = structuredClone(greenhouse.file.proto);
  for (const message of proto.messageType) {
    if (message.name !== "WaterBedRequest") continue;
    message.options = create(MessageOptionsSchema);
    const data = new BinaryWriter().bytes(rules).finish();
    message.options.$unknown = [{ no: 1159, wireType: WireType.LengthDelimited, data }];
  }
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf({ ...greenhouse.file, proto }));
  const service = createFileRegistry(set).getService(greenhouse.typeName);
  if (service === undefined || !isGreenhouse(service)) throw new TypeError("the set has no greenhouse");
  return service;
}

/** Returns the bytes of the files of services, as reflection sends them. */
function textOf(described: readonly DescService[]): string {
  return described
    .map(({ file }) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)).toString("latin1"))
    .join();
}

test("a oneof rule in buf.validate omits hidden fields", async () => {
  const service = ruledGreenhouse();
  const validation = await openValidation();
  const routes: GatewayOptions["routes"] = (router) => router.service(service, { waterBed: () => ({}) });
  const statusFor = async (allow: readonly string[], body: string): Promise<number> => {
    const request = new Request("http://a/beds/7:water", { method: "POST", body, headers: json });
    return (await createGateway({ routes, validation, visibility: { allow } }).fetch(request)).status;
  };
  expect(await statusFor([], '{"liters":1}')).toBe(200);
  expect(await statusFor([], "{}")).toBe(400);
  expect(await statusFor(["INTERNAL"], '{"note":"a"}')).toBe(200);
  expect(textOf(visibleServices([service], { allow: ["INTERNAL"] }))).toContain("note");
  expect(textOf(visibleServices([service], { allow: [] }))).not.toContain("note");
});
