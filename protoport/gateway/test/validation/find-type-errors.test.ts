import type { DescMessage } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { expect, test } from "vitest";
import { findTypeErrors } from "../../src/validation/evaluation-error.ts";
// oxfmt-ignore
import { GetBookRequestSchema, ListBooksRequestSchema, BookSchema
} from "../../../testing/src/gen/library/v1/library_pb.ts";

test("findTypeErrors evaluates a type in several input types only once", () => {
  const counts = new Map<string, number>();
  const validator = createValidator();
  const validate: Validator["validate"] = (type, message) => {
    counts.set(type.typeName, (counts.get(type.typeName) ?? 0) + 1);
    return validator.validate(type, message);
  };
  const inputs = [GetBookRequestSchema, ListBooksRequestSchema].map((input) => ({
    typesWithRules: new Set<DescMessage>([input, BookSchema]),
  }));
  expect(findTypeErrors({ validate }, inputs, new Map())).toEqual([]);
  // An empty message, and one with all fields.
  expect([...counts.values()]).toEqual([2, 2, 2]);
});
