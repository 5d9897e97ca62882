import { expect, test } from "vitest";
import { Differs } from "../../../../../testing/src/comparison.ts";
import { validationEffects } from "./effects/validation-effects.ts";

test.each(Object.entries(validationEffects))("the setting %s has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
