import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Sockets, worker threads and child processes: one process per file keeps them apart.
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
