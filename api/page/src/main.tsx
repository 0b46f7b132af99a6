// Begins.
import { render } from "preact";
import { App } from "./app";

const root = document.getElementById("page");
if (root) render(<App />, root);
