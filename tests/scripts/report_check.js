// report_check.js - appended to a report by report_test.sh: looks at the page as
// a browser lays it out, and tells the page around it what is wrong, or "sound".
addEventListener('load', () => {
    'use strict';
    const faults = [];
    const shown = (text) => JSON.stringify(text.trim().slice(0, 40));

    // Texts with the rectangles of their lines.
    const texts = [];
    const walker = document.createTreeWalker(document.body,
                                             NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.data.trim() === '' || node.parentNode.closest('title, script'))
            continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const box of range.getClientRects())
            if (box.width > 0)
                texts.push({node, box});
    }
    if (texts.length < 10)
        faults.push('only ' + texts.length + ' texts are drawn');

    // Two texts may touch: boxes of lines are higher than their letters.
    const common = (a, b, low, high) =>
        Math.min(a[high], b[high]) - Math.max(a[low], b[low]);
    for (let i = 0; i < texts.length; i++)
        for (let k = i + 1; k < texts.length; k++) {
            const a = texts[i], b = texts[k];
            if (common(a.box, b.box, 'left', 'right') > 1 &&
                common(a.box, b.box, 'top', 'bottom') > 4)
                faults.push(shown(a.node.data) + ' overlaps ' +
                            shown(b.node.data));
        }

    // Labels are on the paper of their figure.
    for (const {node, box} of texts) {
        const svg = node.parentNode.closest('svg');
        const paper = svg && svg.getBoundingClientRect();
        if (svg && (box.left < paper.left - 1 || box.right > paper.right + 1 ||
                    box.top < paper.top - 1 || box.bottom > paper.bottom + 1))
            faults.push(shown(node.data) + ' is outside its figure');
    }

    if (document.documentElement.scrollWidth > window.innerWidth)
        faults.push('the page is ' + document.documentElement.scrollWidth +
                    ' pixels wide');
    for (const svg of document.querySelectorAll('svg'))
        if (svg.getBoundingClientRect().width < 200)
            faults.push('a figure is too small');
    for (const request of performance.getEntriesByType('resource'))
        faults.push('it loads ' + request.name);

    // Letters against what is behind them: WCAG's contrast.
    const light = (color) => {
        const rgb = color.match(/[\d.]+/g).slice(0, 3).map((c) => {
            const x = c / 255;
            return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    };
    const paperOf = (e) => {
        for (; e; e = e.parentElement) {
            const color = getComputedStyle(e).backgroundColor;
            if (!/, 0\)$/.test(color))
                return color;
        }
        return 'rgb(255, 255, 255)';
    };
    for (const {node} of texts) {
        const e = node.parentNode, style = getComputedStyle(e);
        const svg = e.closest('svg'), paper = svg?.querySelector('.paper');
        const a = light(svg ? style.fill : style.color);
        const b = light(paper ? getComputedStyle(paper).fill : paperOf(e));
        if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5)
            faults.push(shown(node.data) + ' can hardly be read');
    }

    parent.postMessage(
        window.innerWidth + ' ' +
            (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark'
                                                                : 'light') +
            ' ' +
            (faults.length === 0 ? 'sound'
                                 : 'FAULTS\n' + faults.slice(0, 20).join('\n')),
        '*');
});
