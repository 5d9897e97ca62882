import type { DescService } from "@bufbuild/protobuf";
import {
  Edition,
  FeatureSet_EnumType,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { serviceIn } from "../../../testing/src/gateway/file-init.ts";
import { compareServices, withoutRules } from "../../src/compare/index.ts";

/** Returns a service whose message `Bed` has an enum. */
function serviceWith(enumType: FeatureSet_EnumType, inputType: string, outputType: string): DescService {
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const field = { name: "color", number: 1, label, type: FieldDescriptorProto_Type.ENUM, typeName: ".Color" };
  return serviceIn(
    {
      name: "beds.proto",
      syntax: "editions",
      edition: Edition.EDITION_2023,
      enumType: [{ name: "Color", value: [{ name: "NONE", number: 0 }], options: { features: { enumType } } }],
      messageType: [{ name: "Bed", field: [field] }, { name: "Nothing" }],
      service: [{ name: "Beds", method: [{ name: "Send", inputType, outputType }] }],
    },
    "Beds",
  );
}

/** Returns the rules that are reported after the enum has been closed. */
function rulesAfterClosing(inputType: string, outputType: string): readonly string[] {
  const before = serviceWith(FeatureSet_EnumType.OPEN, inputType, outputType);
  const now = serviceWith(FeatureSet_EnumType.CLOSED, inputType, outputType);
  return compareServices([before], [now], {}, withoutRules).map(({ rule }) => rule);
}

test("compareServices reports a closed enum only if requests contain it", () => {
  expect(rulesAfterClosing(".Bed", ".Nothing")).toEqual(["enum-closed"]);
  expect(rulesAfterClosing(".Nothing", ".Bed")).toEqual([]);
});
