import type { Reporter, TestModule } from "vitest/node";

/** Prints how many inputs a run's properties have tried, and names the properties that ran out of time. */
export class InputCounts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = modules
      .flatMap((module) => [...module.children.allTests()])
      .flatMap((test) => (test.meta().inputs ?? []).map((inputs) => ({ test, ...inputs })));
    if (counts.length === 0) return;
    for (const { test, tried, wanted } of counts.filter((count) => count.tried < count.wanted))
      console.log(`${test.module.relativeModuleId}: ${test.fullName}: ${tried} of ${wanted} inputs`);
    console.log(`${counts.reduce((sum, { tried }) => sum + tried, 0)} inputs of ${counts.length} properties`);
  }
}
