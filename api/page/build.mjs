// Bundles src/ into built/: one script, one style sheet, and the page that names both.
// File names carry a hash of what is in them, so that a browser may keep them for ever.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const target = "built";
await rm(target, { recursive: true, force: true });
await mkdir(target);
const { metafile } = await build({
  entryPoints: ["src/main.tsx", "src/styles/main.css"],
  outdir: `${target}/assets`,
  entryNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
  legalComments: "linked",
});
const names = Object.keys(metafile.outputs).map((path) => basename(path));
const one = (ending) => names.find((name) => name.endsWith(ending));
const page = await readFile("src/index.html", "utf8");
await writeFile(
  `${target}/index.html`,
  page.replaceAll("main.css", one(".css")).replaceAll("main.js", one(".js")),
);
await cp("src/icon.svg", `${target}/assets/icon.svg`);
