/* The console's one script: it refreshes what a page shows, counts what is new in a list, previews a cron rule while it
   is typed, and answers to keys. Everything works without it, by reloading. */
"use strict";
(() => {
    const strip = document.querySelector(".console-nav");
    if (!strip) return;
    const part = document.querySelector("[data-live]");
    const list = document.querySelector("#result_list");
    const age = strip.querySelector("[data-age]");
    const wanted = strip.dataset.refresh;
    const LEAST = 3000, OLD = 30000, CHECK = 1000, REST = 500;
    let etag = null, fresh = Date.now(), failures = 0, timer = null, moved = Date.now(), asking = false, again = false;
    let pressed = false, aimed = 0;

    const period = () => {
        if (wanted === "adaptive") return Date.now() - moved < 60000 ? 5000 : 60000;
        return Number(wanted) * 1000;
    };
    const plan = () => {
        clearTimeout(timer);
        if (wanted === "off" || document.hidden) return;
        const wait = Math.max(LEAST, period() * 2 ** Math.min(failures, 4));
        timer = setTimeout(refresh, wait * (0.8 + 0.4 * Math.random()));
    };
    const say = (text) => {
        age.hidden = !text;
        const told = age.querySelector("[role=status]");
        if (told.textContent !== text) told.textContent = text;
    };
    /* Nothing is changed while a hand is on its way: what moves between press and release is a click that never was. */
    const rest = () => new Promise((go) => {
        const look = () => (pressed || Date.now() - aimed < REST ? setTimeout(look, 100) : go());
        look();
    });
    /* Nothing is taken away from under the hands: a field, a selection, an open dialog, ticked rows. */
    const isBusy = (area) =>
        (area.contains(document.activeElement) && document.activeElement !== area) ||
        (!getSelection().isCollapsed && area.contains(getSelection().anchorNode)) ||
        document.querySelector("dialog[open]") !== null ||
        document.querySelector("input.action-select:checked") !== null;

    const ask = async (url, headers) => {
        const stop = new AbortController();
        const late = setTimeout(() => stop.abort(), 10000);
        try {
            const answer = await fetch(url, {headers, credentials: "same-origin", redirect: "error", signal: stop.signal});
            if (answer.status !== 304 && !answer.ok) throw new Error(answer.status);
            return answer;
        } finally {
            clearTimeout(late);
        }
    };
    const replace = (area, markup) => {
        const open = new Set([...area.querySelectorAll("details[open]")].map((each) => place(each, area)));
        const top = [...area.querySelectorAll(".table-scroll")].map((each) => each.scrollTop);
        area.replaceChildren(...new DOMParser().parseFromString(markup, "text/html").body.childNodes);
        name(area);
        for (const each of area.querySelectorAll("details")) each.open = open.has(place(each, area));
        [...area.querySelectorAll(".table-scroll")].forEach((each, n) => { each.scrollTop = top[n] || 0; });
    };
    const place = (details, area) => [...area.querySelectorAll("details")].indexOf(details);

    /* On a phone a row becomes a card: each of its cells then says what its column is. */
    const name = (area) => {
        for (const table of area.querySelectorAll("table.rows, #result_list")) {
            const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map((each) => each.textContent.trim());
            if (heads.length < 4) continue;
            table.classList.add("cards-below");
            for (const row of table.tBodies[0]?.rows ?? [])
                [...row.cells].forEach((cell, n) => { if (heads[n]) cell.dataset.label = heads[n]; });
        }
    };
    name(document);
    strip.querySelector("[aria-current]")?.scrollIntoView({block: "nearest", inline: "center"});

    const refreshPart = async () => {
        const answer = await ask(part.dataset.live, etag ? {"If-None-Match": etag} : {});
        if (answer.status === 304) return true;
        const markup = await answer.text();
        await rest();
        if (isBusy(part)) return false;
        etag = answer.headers.get("ETag");
        replace(part, markup);
        return true;
    };
    /* Rows of a list stay where they are: those that are there change in place, new ones wait behind a button. */
    const key = (row) => row.querySelector("th a, td a")?.getAttribute("href").split("?")[0];
    const refreshList = async () => {
        const answer = await ask(location.href, {});
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        await rest();
        const rows = new Map([...page.querySelectorAll("#result_list tbody tr")].map((row) => [key(row), row]));
        const known = [...list.querySelectorAll("tbody tr")];
        const there = new Set(known.map(key));
        for (const row of known) {
            const now = rows.get(key(row));
            if (now && !isBusy(row)) {
                [...now.cells].forEach((cell, n) => {
                    if (row.cells[n] && !cell.querySelector("input") && row.cells[n].innerHTML !== cell.innerHTML)
                        row.cells[n].replaceChildren(...cell.childNodes);
                });
            }
        }
        offer([...rows.keys()].filter((each) => !there.has(each)).length);
        return true;
    };
    const offer = (count) => {
        let pill = document.getElementById("new-rows");
        if (!count) return pill?.remove();
        if (!pill) {
            pill = document.createElement("p");
            pill.id = "new-rows";
            pill.setAttribute("role", "status");
            list.before(pill);
            const link = document.createElement("a");
            link.href = location.href;
            pill.append(link);
        }
        if (pill.firstChild.textContent !== `${count} new`) pill.firstChild.textContent = `${count} new`;
    };
    const refresh = async () => {
        if (!part && !list) return;
        if (asking) {
            again = true; // what was asked for meanwhile may be newer than what is on its way
            return;
        }
        asking = true;
        (part || list).setAttribute("aria-busy", "true");
        try {
            if (await (part ? refreshPart() : refreshList())) fresh = Date.now();
            failures = 0;
            if (Date.now() - fresh < OLD) say("");
        } catch {
            failures += 1;
        } finally {
            asking = false;
            (part || list).removeAttribute("aria-busy");
            if (again) {
                again = false;
                refresh();
            } else plan();
        }
    };
    setInterval(() => {
        const old = Date.now() - fresh;
        if (wanted !== "off" && (part || list) && !document.hidden && old >= Math.max(OLD, 2.5 * period()))
            say(`data is ${old < 120000 ? Math.round(old / 1000) + " s" : Math.round(old / 60000) + " min"} old`);
    }, CHECK);
    document.addEventListener("visibilitychange", () => {
        if (document.hidden) clearTimeout(timer);
        else if (wanted !== "off") refresh();
    });
    for (const each of ["pointermove", "keydown", "scroll"])
        addEventListener(each, () => { moved = Date.now(); }, {passive: true});
    for (const each of ["pointermove", "pointerdown", "pointerup", "pointercancel", "contextmenu"])
        addEventListener(each, (event) => {
            aimed = Date.now();
            pressed = each === "pointerdown" || (each === "pointermove" && event.buttons > 0);
        }, {passive: true, capture: true});
    plan();

    /* A cron rule, as it is typed. */
    const preview = document.querySelector("[data-preview]");
    if (preview) {
        const form = preview.closest("form");
        const names = ["expression", "timezone", "dst", "every"];
        let soon = null, last = "";
        const look = async () => {
            const asked = new URLSearchParams(names.map((name) => [name, form.elements[name]?.value ?? ""]));
            asked.set("_live", "1");
            if (asked.toString() === last) return;
            last = asked.toString();
            try {
                const answer = await ask(`${preview.dataset.preview}?${asked}`, {});
                const markup = await answer.text();
                await rest();
                if (asked.toString() === last) replace(preview, markup);
            } catch {
                last = "";
                clearTimeout(soon);
                soon = setTimeout(look, 3000);
            }
        };
        form.addEventListener("input", (event) => {
            if (names.includes(event.target.name)) {
                clearTimeout(soon);
                soon = setTimeout(look, 300);
            }
        });
        if (form.elements.expression.value || form.elements.every.value) look();
    }

    /* The admin's own choice of a related row has no name of its own while nothing is chosen: its label's. */
    window.django?.jQuery?.(() => {
        for (const field of document.querySelectorAll(".select2-selection [role=textbox]")) {
            const label = field.closest(".form-row")?.querySelector("label");
            if (!label) continue;
            label.id ||= `label-of-${field.id}`;
            field.setAttribute("aria-labelledby", label.id);
        }
    });

    if (navigator.clipboard) {
        document.documentElement.classList.add("can-copy");
        document.addEventListener("click", async (event) => {
            const button = event.target.closest("[data-copy]");
            if (!button) return;
            const told = button.textContent;
            try {
                await navigator.clipboard.writeText(button.dataset.copy);
                button.textContent = "copied";
                setTimeout(() => { button.textContent = told; }, 1500);
            } catch { /* the text is beside the button */ }
        });
    }

    /* Keys: never while something is typed, never with a modifier. */
    if (strip.dataset.keys !== "on") return;
    let going = 0;
    const rows = () => [...document.querySelectorAll("#result_list tbody tr, .panel-table tbody tr")];
    const step = (by) => {
        const all = rows();
        if (!all.length) return;
        const at = all.findIndex((row) => row.classList.contains("is-current"));
        all[at]?.classList.remove("is-current");
        const row = all[Math.min(Math.max(at + by, 0), all.length - 1)];
        row.classList.add("is-current");
        row.querySelector("a")?.focus({preventScroll: true});
        row.scrollIntoView({block: "nearest"});
    };
    const keys = {
        "/": () => document.getElementById("console-q")?.focus(),
        "g": () => { going = Date.now(); },
        "j": () => step(1),
        "k": () => step(-1),
        "x": () => document.querySelector("tr.is-current input.action-select")?.click(),
        "r": () => refresh(),
        "?": () => { location.href = `${strip.querySelector(".console-me").href}#keys`; },
    };
    document.addEventListener("keydown", (event) => {
        const typing = event.target.closest?.(
            "input:not([type=checkbox], [type=radio], [type=submit], [type=button]), textarea, select, [contenteditable]");
        if (event.key === "Escape" && typing) return event.target.blur();
        if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
        if (Date.now() - going < 1500) {
            going = 0;
            const link = strip.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
            if (link) {
                event.preventDefault();
                location.href = link.href;
            }
        } else if (keys[event.key]) {
            event.preventDefault();
            keys[event.key]();
        }
    });
})();
