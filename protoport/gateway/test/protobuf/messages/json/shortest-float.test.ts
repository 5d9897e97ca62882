import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shortestFloat } from "../../../../src/protobuf/messages/json/shortest-float.ts";
import { numRunsOf } from "@protoport/testing/process";

const bits = new Uint32Array(1);
const single = new Float32Array(bits.buffer);

function floatOf(pattern: number): number {
  bits[0] = pattern;
  return single[0] ?? Number.NaN;
}

const digitsOf = (decimal: number): number =>
  String(Math.abs(decimal))
    .replace(/e.*|\./g, "")
    .replace(/^0+/, "")
    .replace(/0+$/, "").length;

// Returns the first digit count for which Number.prototype.toPrecision() identifies the float.
function fewestDigits(value: number): number {
  for (let digits = 1; digits < 9; digits++)
    if (Math.fround(Number(value.toPrecision(digits))) === value) return digitsOf(Number(value.toPrecision(digits)));
  return 9;
}

describe("shortestFloat()", () => {
  test.each([
    [Math.fround(19.99), 19.99],
    [Math.fround(-0.1), -0.1],
    [0.5, 0.5],
    [1, 1],
    [16_777_216, 16_777_216],
    [Math.fround(123_456.789), 123_456.79],
    [Math.fround(1e-10), 1e-10],
    [Math.fround(1e22), 1e22],
    [Math.fround(1e38), 1e38],
    // The largest float, the smallest normal float, and the smallest float.
    [3.4028234663852886e38, 3.4028235e38],
    [1.1754943508222875e-38, 1.1754944e-38],
    [1.401298464324817e-45, 1e-45],
  ])("shortens %d to %d without loss", (value, want) => expect(shortestFloat(value)).toBe(want));

  const edges = [0, 1, 2, 0x3f_ffff, 0x40_0000, 0x7f_fffe, 0x7f_ffff];
  const everyExponent = Array.from({ length: 511 }, (_, power) => edges.map((low) => floatOf(power * 2 ** 23 + low)));

  test("returns as few digits as toPrecision() needs, for every exponent", () => {
    for (const value of everyExponent.flat().filter((float) => Number.isFinite(float) && float !== 0)) {
      const decimal = shortestFloat(value);
      expect([Math.fround(decimal), digitsOf(decimal)]).toEqual([value, fewestDigits(value)]);
    }
  });

  test("returns as few digits as toPrecision() needs, for random floats", () => {
    const floats = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.tuple(fc.nat(1_000_000), fc.nat(12)).map(([digits, decimals]) => Math.fround(digits / 10 ** decimals)),
    );
    fc.assert(
      fc.property(floats, (value) => {
        fc.pre(value !== 0);
        const decimal = shortestFloat(value);
        expect([Math.fround(decimal), digitsOf(decimal)]).toEqual([value, fewestDigits(value)]);
      }),
      { numRuns: numRunsOf(500) },
    );
  });
});
